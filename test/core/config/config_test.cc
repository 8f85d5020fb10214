// The ini file: its content, its errors with their lines, and inih's unwanted conveniences.
#include "core/config/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>

using namespace rocefs;

namespace {

// Two NICs cabled back to back; `device` is said about the first, on line 2.
std::string pair_with(const std::string& device) {
  return "[device a]\n" + device + "\n[device b]\n[link a b]\n";
}

std::string refusal(const std::string& text) {
  Result<Config> config = parse_config(text, "f");
  if (config) return "accepted";
  CHECK(config.error().code == EINVAL);
  return config.error().reason;
}

}  // namespace

TEST_CASE("config: a file can set every value of a topology") {
  Result<Config> config = parse_config(
      "[clock]\nmode=virtual\ndilation=1\nseed=0x10\n[nic]\nmgmt=none\n"
      "mad_semantics=ofed4\n[device "
      "mlx5_0]\npci=0001:0A:1f.7\nnetdev=eth0\nmac=02:00:00:00:00:aB\nip=192.168.0.9\n"
      "ip6=2001:db8::9\nmtu=256\nports=1\n[device b]\n[switch s.1]\n"
      "buffer=1M\n[link mlx5_0 s.1]\nrate=100G\ndelay=1.5us\nloss=1e-3\nbuffer=64K\n"
      "ingress_buffer=32K\nstate=down\n[link s.1 b]\n"
      "[knobs]\nx/y = 1 2\n",
      "f");
  REQUIRE(config);
  CHECK(config->clock == ClockMode::kVirtual);
  CHECK(config->dilation == 1u);
  CHECK(config->seed == 16u);
  CHECK(!config->mgmt);
  CHECK(config->mad_semantics == "ofed4");
  REQUIRE(config->topology);
  const DeviceSpec& device = config->topology->devices.at(0);
  CHECK(device.name == "mlx5_0");
  CHECK(device.pci == "0001:0a:1f.7");
  const PortSpec& port = device.ports.at(0);
  CHECK(device.ports.size() == 1);
  CHECK(port.netdev == "eth0");
  CHECK(port.mac == std::array<uint8_t, 6>{2, 0, 0, 0, 0, 0xab});
  CHECK(port.ipv4 == std::array<uint8_t, 4>{192, 168, 0, 9});
  REQUIRE(port.ipv6);
  CHECK(port.ipv6->at(0) == 0x20);
  CHECK(port.ipv6->at(15) == 9);
  CHECK(port.mtu == 256);
  const LinkSpec& link = config->topology->links.at(0);
  CHECK(link.rate_bps == 100'000'000'000);
  CHECK(link.delay_ns == 1500);
  CHECK(link.loss == 0.001);
  CHECK(link.buffer_bytes == 65536);
  CHECK(link.ingress_buffer_bytes == 32768);
  CHECK_FALSE(link.up);
  CHECK(config->topology->switches.at(0).name == "s.1");
  CHECK(config->topology->switches.at(0).buffer_bytes == 1 << 20);
  REQUIRE(config->knobs.size() == 1);
  CHECK(config->knobs[0].path == "x/y");
  CHECK(config->knobs[0].value == "1 2");
  CHECK(config->knobs[0].line == 28);
}

TEST_CASE("config: a file without devices, switches and links keeps the default topology") {
  for (std::string_view text : {"", "\n; nothing\n", "[clock]\nseed=1\n", "[knobs]\na=b"}) {
    Result<Config> config = parse_config(text, "f");
    REQUIRE(config);
    CHECK_FALSE(config->topology);
  }
}

TEST_CASE("config: 12800 devices get distinct defaults, and one more is refused") {
  std::string text;
  for (int i = 1; i <= 12800; ++i) {
    if (i % 200 == 1) text += fmt::format("[switch s{}]\n", i / 200);
    text += fmt::format("[device d{}]\nports=2\n[link d{} s{}]\n", i, i, (i - 1) / 200);
    text += fmt::format("[switch t{}]\n[link d{}/2 t{}]\n", i, i, i);
  }
  Result<Config> config = parse_config(text, "f");
  REQUIRE(config);
  CHECK(config->topology->devices.at(0).pci == "0000:2b:00.0");
  CHECK(config->topology->devices.at(1).pci == "0000:ac:00.0");
  CHECK(config->topology->devices.at(199).ports[0].ipv4 == std::array<uint8_t, 4>{10, 77, 0, 200});
  const DeviceSpec& next = config->topology->devices.at(200);
  CHECK(next.pci == "0001:2b:00.0");
  CHECK(next.ports[0].netdev == "enP1p43s0");
  CHECK(next.ports[0].ipv4 == std::array<uint8_t, 4>{10, 77, 2, 1});
  CHECK(next.ports[1].ipv4 == std::array<uint8_t, 4>{10, 77, 3, 1});
  CHECK(next.ports[0].mac == std::array<uint8_t, 6>{0x02, 0, 0x4c, 0x6d, 0x64, 1});
  const DeviceSpec& last = config->topology->devices.at(12799);
  CHECK(last.ports[1].netdev == "enP63p200s0d1");
  CHECK(last.ports[1].ipv4 == std::array<uint8_t, 4>{10, 77, 127, 200});
  CHECK(refusal(text + "[device e]\n") == "f:64065: more than 12800 devices");
}

TEST_CASE("config: no more switches than their route tables have room for") {
  std::string text;
  for (int i = 0; i < 16384; ++i) text += fmt::format("[switch s{}]\n", i);
  CHECK(refusal(text + "[device d]\n[link d s0]\n") == "accepted");
  CHECK(refusal(text + "[switch e]\n") == "f:16385: more than 16384 switches");
}

TEST_CASE("config: devices without a path between them are no error") {
  CHECK(refusal("[device a]\n[device b]\n[switch s]\n[switch t]\n[link a s]\n[link b t]\n") ==
        "accepted");
}

TEST_CASE("config: an invalid value of a device is refused with its key and the reason") {
  struct Row {
    const char *said, *why;
  };
  const Row rows[] = {
      {"mac=02:-1:4c:6d:62:01", "mac=02:-1:4c:6d:62:01: six octets are wanted"},
      {"mac=02:0x:4c:6d:62:01", "mac=02:0x:4c:6d:62:01: six octets are wanted"},
      {"mac=02:00:4c: 6:62:01", "mac=02:00:4c: 6:62:01: six octets are wanted"},
      {"mac=02:00:4c:6d:62", "mac=02:00:4c:6d:62: six octets are wanted"},
      {"mac=02:00:4c:6d:62:1", "mac=02:00:4c:6d:62:1: six octets are wanted"},
      {"mac=02:00:4c:6d:62:01:00", "mac=02:00:4c:6d:62:01:00: six octets are wanted"},
      {"mac=01:00:5e:00:00:01", "mac=01:00:5e:00:00:01: a multicast address"},
      {"mac=00:00:00:00:00:00", "mac=00:00:00:00:00:00: not a station's address"},
      {"pci=-001:2b:00.0", "pci=-001:2b:00.0: an address such as 0000:2b:00.0 is wanted"},
      {"pci=0000:+b:00.0", "pci=0000:+b:00.0: an address such as 0000:2b:00.0 is wanted"},
      {"pci=0000:2b:20.0", "pci=0000:2b:20.0: an address such as 0000:2b:00.0 is wanted"},
      {"pci=0000:2b:00.8", "pci=0000:2b:00.8: an address such as 0000:2b:00.0 is wanted"},
      {"pci=0000:2b:00.0x", "pci=0000:2b:00.0x: an address such as 0000:2b:00.0 is wanted"},
      {"ip=", "ip=: an IPv4 address is wanted"},
      {"ip=0.0.0.0", "ip=0.0.0.0: not a unicast address"},
      {"ip=224.0.0.1", "ip=224.0.0.1: not a unicast address"},
      {"ip=255.255.255.255", "ip=255.255.255.255: not a unicast address"},
      {"ip6=10.0.0.1", "ip6=10.0.0.1: an IPv6 address is wanted"},
      {"ip6=::", "ip6=::: not a global unicast address"},
      {"ip6=ff02::1", "ip6=ff02::1: not a global unicast address"},
      {"ip6=fe80::1", "ip6=fe80::1: not a global unicast address"},
      {"ip6=::ffff:10.77.0.2", "ip6=::ffff:10.77.0.2: not a global unicast address"},
      {"netdev=a/b", "netdev=a/b: not an interface's name"},
      {"netdev=fifteen-letters", "accepted"},
      {"netdev=sixteen--letters", "netdev=sixteen--letters: not an interface's name"},
      {"netdev=mango_mgmt0",
       "netdev=mango_mgmt0: names mango_mgmtN are the management interfaces'"},
      {"netdev=mango_mgm0", "accepted"},
      {"netdev=lo", "netdev=lo: a name that Linux uses itself"},
      {"netdev=default", "netdev=default: a name that Linux uses itself"},
      {"netdev=-f", "netdev=-f: not an interface's name"},
      {"host=-f", "host=-f: not a name"},
      {"mtu=01024", "mtu=01024: 256, 512, 1024, 2048 or 4096 is wanted"},
      {"ports=0", "ports=0: 1 or 2 is wanted"},
      {"ports=3", "ports=3: 1 or 2 is wanted"}};
  for (const Row& row : rows) {
    std::string why = row.why;
    CHECK(refusal(pair_with(row.said)) == (why == "accepted" ? why : "f:2: " + why));
  }
}

TEST_CASE("config: a two-port device has an interface, addresses and a cable per port") {
  std::string text =
      "[device mlx5_0]\nports=2\nmtu=1024\n[port mlx5_0 2]\nnetdev=eth1\nip=10.9.9.9\n"
      "[device b]\nports=2\n[switch s]\n[link mlx5_0/1 s]\n[link s mlx5_0/2]\n[link b b/2]\n";
  Result<Config> config = parse_config(text, "f");
  REQUIRE(config);
  const Topology& topology = *config->topology;
  const DeviceSpec& device = topology.devices.at(0);
  REQUIRE(device.ports.size() == 2);
  CHECK(device.ports[0].mtu == 1024);
  CHECK(device.ports[1].mtu == 4096);
  CHECK(device.ports[1].netdev == "eth1");
  CHECK(device.ports[1].ipv4 == std::array<uint8_t, 4>{10, 9, 9, 9});
  CHECK(device.ports[0].mac != device.ports[1].mac);
  CHECK(topology.devices.at(1).ports[1].netdev == "enp172s0d1");
  CHECK(topology.devices.at(1).ports[1].ipv4 == std::array<uint8_t, 4>{10, 77, 1, 2});
  CHECK(topology.links.at(0).a == "mlx5_0");
  CHECK(topology.links.at(1).b == "mlx5_0/2");
  CHECK(topology.links.at(2).b == "b/2");
}

TEST_CASE("config: a second port that does not exist, or is defined twice, is refused") {
  struct Row {
    const char *text, *why;
  };
  const Row rows[] = {
      {"[port a 2]\n", "f:1: no device a before"},
      {"[device a]\n[port a 2]\n", "f:2: a has one port: ports=2 is missing"},
      {"[device a]\nports=2\n[port a 1]\n", "f:3: port 2 is wanted: port 1 belongs to [device]"},
      {"[device a]\nports=2\n[port a 2]\n[port a 2]\n", "f:4: a/2 exists already"},
      {"[device a]\nports=2\n[port a 2]\npci=0000:01:00.0\n",
       "f:4: unknown key pci in [port]: netdev, mac, ip, ip6 or mtu is wanted"},
      {"[port a]\n",
       "f:1: unknown section [port a]: clock, nic, topology, device NAME, port NAME 2, switch "
       "NAME, uplink NAME, link A B, knobs, sim, flows, load NAME, at, inject, sample, plot or "
       "variant NAME "
       "is wanted"},
      {"[device a]\nports=2\n[switch s]\n[link a s]\n", "f:2: a/2 has no link"},
      {"[device a]\nports=2\n[port a 2]\n[switch s]\n[link a s]\n", "f:3: a/2 has no link"},
      {"[device a]\n[switch s]\n[link a/2 s]\n", "f:3: no device, switch or uplink a/2"},
      {"[device a]\n[switch s]\n[link a/3 s]\n", "f:3: no device, switch or uplink a/3"},
      {"[device a]\n[switch s]\n[link a s]\n[link a/1 s]\n",
       "f:4: the port of a has its cable already"},
      {"[device a]\nports=2\n[link a a/1]\n", "f:3: the port of a has its cable already"},
      {"[device a]\nports=2\nip=10.77.1.1\n[link a a/2]\n", "f:2: a/2 has the ip of another port"},
      {"[device a]\nports=2\n[device a.2]\n[switch s]\n[link a s]\n[link a/2 s]\n[link a.2 s]\n",
       "f:7: two links would be named a.2-s"}};
  for (const Row& row : rows) CHECK(refusal(row.text) == row.why);
}

TEST_CASE("config: an uplink is a node with one cable") {
  std::string device = "[device a]\n[switch s]\n[link a s]\n";
  Result<Config> config = parse_config(device + "[uplink up]\n[link s up]\nrate=1G\n", "f");
  REQUIRE(config);
  REQUIRE(config->topology->uplinks.size() == 1);
  CHECK(config->topology->uplinks[0].name == "up");
  CHECK(config->topology->links.at(1).b == "up");
  CHECK(refusal("[device a]\n[uplink up]\n[link up a]\n") == "accepted");
  CHECK(refusal(device + "[uplink up]\n") == "f:4: up has no link");
  CHECK(refusal(device + "[uplink s]\n") == "f:4: s exists already");
  CHECK(refusal(device + "[uplink up]\nport=1\n") ==
        "f:5: unknown key port in [uplink]: gso is wanted");
  CHECK(refusal(device + "[uplink up]\n[switch t]\n[link up s]\n[link t up]\n") ==
        "f:7: the uplink up has its cable already");
  CHECK(refusal(device + "[uplink up]\n[uplink v]\n[link up v]\n") ==
        "f:6: a link from an uplink to an uplink");
}

TEST_CASE("topology: an uplink's IPv4 or IPv6 address becomes that of mb_0") {
  Result<Topology> v4 = uplink_topology("10.9.0.1");
  REQUIRE(v4);
  CHECK(v4->devices[0].ports[0].ipv4 == std::array<uint8_t, 4>{10, 9, 0, 1});
  CHECK(v4->links.back().a == "sw_0");
  CHECK(v4->links.back().b == v4->uplinks.at(0).name);
  Result<Topology> v6 = uplink_topology("2001:db8::7");
  REQUIRE(v6);
  CHECK(v6->devices[0].ports[0].ipv6->at(15) == 7);
  CHECK(v6->devices[0].ports[0].ipv4 == default_topology().devices[0].ports[0].ipv4);
  for (const char* bad : {"", "10.9.0", "10.9.0.1/24", "224.0.0.1", "fe80::1", "::", "host"}) {
    CHECK_FALSE(uplink_topology(bad));
  }
}

TEST_CASE("config: a link's values have the ranges of its knobs") {
  std::string link = "[device a]\n[device b]\n[link a b]\n";
  CHECK(refusal(link + "buffer=1T") == "accepted");
  CHECK(refusal(link + "buffer=2T") == "f:4: buffer=2T is larger than 1T");
  CHECK(refusal(link + "ingress_buffer=2T") == "f:4: ingress_buffer=2T is larger than 1T");
  CHECK(refusal(link + "rate=999K") == "f:4: rate=999K is outside 1M to 10T");
  CHECK(refusal(link + "delay=11s") == "f:4: delay=11s is longer than 10s");
  CHECK(refusal(link + "loss=-0.1") == "f:4: loss: '-0.1' is outside 0 to 1");
  CHECK(refusal(link + "state=maybe") == "f:4: state=maybe: up or down is wanted");
}

TEST_CASE("config: a switch has a buffer, in a shape every switch the same") {
  CHECK(refusal("[switch s]\nbuffer=2T") == "f:2: buffer=2T is larger than 1T");
  CHECK(refusal("[switch /]\nbuffer=1M") == "f:1: '/' cannot be a name");
  CHECK(refusal("[switch s]\nsize=1") == "f:2: unknown key size in [switch]: buffer is wanted");
  CHECK(
      refusal("[device a]\n[switch s]\nbuffer=1M\n[switch t]\nbuffer=2M\n[link a s]\n[link s t]") ==
      "accepted");
  Result<Config> shape = parse_config("[topology]\nkind=dumbbell\nbuffer=1M\n", "f");
  REQUIRE(shape);
  for (const SwitchSpec& one : shape->topology->switches) CHECK(one.buffer_bytes == 1 << 20);
  for (const LinkSpec& one : shape->topology->links) CHECK(one.buffer_bytes == kMaxBuffer);
}

TEST_CASE("config: the identifiers of devices and ports are unique") {
  for (std::string same : {"pci=0000:01:00.0", "netdev=eth0", "mac=02:00:00:00:00:01",
                           "ip=10.0.0.1", "ip6=2001:db8::1"}) {
    std::string text = "[device a]\n" + same + "\n[device b]\n" + same + "\n[link a b]\n";
    std::string what = same.substr(0, same.find('='));
    std::string other = what == "pci" ? "device" : "port";
    CHECK(refusal(text) == "f:3: b has the " + what + " of another " + other);
  }
}

TEST_CASE("config: a name that is a word of command lines is refused") {
  CHECK(refusal("[device all]\n") == "f:1: all is the word for all devices");
  CHECK(refusal("[device -f]\n") == "f:1: '-f' cannot be a name");
  CHECK(refusal("[device a]\n[switch .s]\n") == "f:2: '.s' cannot be a name");
  CHECK(refusal("[device a]\n[switch all]\n[link a all]\n") == "accepted");
}

TEST_CASE("config: two links that would share a directory are refused") {
  CHECK(
      refusal("[device a-b]\n[switch c]\n[device a]\n[switch b-c]\n[link a-b c]\n[link a b-c]\n") ==
      "f:6: two links would be named a-b-c");
  CHECK(refusal("[device x]\n[device x-x]\n[link x x-x]\n") ==
        "f:3: two links would be named x-x-x");
}

TEST_CASE("config: a knob's path may contain colons, as in devices/pci0000:2b") {
  Result<Config> config =
      parse_config("[knobs]\ndevices/pci0000:2b/x = a:b=c ; said\nplain : 7\n", "f");
  REQUIRE(config);
  REQUIRE(config->knobs.size() == 2);
  CHECK(config->knobs[0].path == "devices/pci0000:2b/x");
  CHECK(config->knobs[0].value == "a:b=c");
  CHECK(config->knobs[1].path == "plain");
  CHECK(config->knobs[1].value == "7");
  CHECK(refusal("[knobs]\na:b = 1\na:b = 2\n") == "f:3: a:b is given twice");
}

TEST_CASE("config: a byte order mark and CRLF line ends are accepted") {
  Result<Config> config =
      parse_config("\xEF\xBB\xBF[device a]\r\nmtu=256\r\n[device b]\r\n[link a b]\r\n", "f");
  REQUIRE(config);
  CHECK(config->topology->devices.at(0).ports[0].mtu == 256);
}

TEST_CASE("config: control characters are refused with their line") {
  using namespace std::string_literals;
  CHECK(refusal("[clock]\nseed=1\nx\0y\n"s) == "f:3: holds the byte 0x00: not a text file");
  // inih takes these for blanks: a section behind one would go unnoticed, a key continue a value.
  CHECK(refusal("[device a]\n\v[device b]\n") == "f:2: holds the byte 0x0b: not a text file");
  CHECK(refusal("[clock]\nseed=1\n\fseed=2\n") == "f:3: holds the byte 0x0c: not a text file");
  CHECK(refusal("[clock]\r[x]\n") == "f:1: holds the byte 0x0d: not a text file");
  CHECK(refusal("[\x1b[31m]\n") == "f:1: holds the byte 0x1b: not a text file");
}

TEST_CASE("config: an indented line is a line of its own, not a continuation") {
  CHECK(refusal("[clock]\n  seed = 1\n\tseed = 2\n") == "f:3: seed is given twice");
  CHECK(refusal("[clock]\nseed = 1\n   2\n") == "f:3: not a [section], key = value or comment");
}

TEST_CASE("config: mad_semantics is doc by default, and takes doc, ofed4 or ofed25") {
  CHECK(parse_config("", "f")->mad_semantics == "doc");
  for (std::string word : {"doc", "ofed4", "ofed25"}) {
    CHECK(parse_config("[nic]\nmad_semantics = " + word + "\n", "f")->mad_semantics == word);
  }
}

TEST_CASE("config: the first invalid line is reported, not a later one") {
  CHECK(refusal("[device a]\nmtu=256\n[device b\nmtu=256\n[link a b]\n") ==
        "f:3: not a [section], key = value or comment");
  CHECK(refusal("[clock]\nfoo=1\nnonsense\n") ==
        "f:2: unknown key foo in [clock]: mode, seed or dilation is wanted");
  CHECK(refusal("[nic]\nmgmt=off\n") == "f:2: mgmt=off: default or none is wanted");
  CHECK(refusal("[nic]\nmode=soc\n") ==
        "f:2: unknown key mode in [nic]: mgmt or mad_semantics is wanted");
  CHECK(refusal("[nic]\nmgmt=none\nmad_semantics=ofed5\n") ==
        "f:3: mad_semantics=ofed5: doc, ofed4 or ofed25 is wanted");
  CHECK(refusal("[nic]\nmad_semantics=\n") ==
        "f:2: mad_semantics=: doc, ofed4 or ofed25 is wanted");
  CHECK(refusal("[nic]\nmad_semantics=doc\nmad_semantics=doc\n") ==
        "f:3: mad_semantics is given twice");
  CHECK(refusal("[nic a]\n") == "f:1: [nic] takes no name");
}

TEST_CASE("config: text after a section header is refused, unless it is a comment") {
  CHECK(refusal("[clock] seed=1\n") == "f:1: text after [clock]");
  CHECK(refusal("[clock] ; as it was\nseed=1\n") == "accepted");
  CHECK(refusal("[clock]# as it was\nseed=1\n") == "accepted");
}

TEST_CASE("config: a repeated section continues the earlier one") {
  CHECK(refusal("[clock]\nseed=1\n[knobs]\na=1\n[clock]\nmode=real\n") == "accepted");
  CHECK(refusal("[clock]\nseed=1\n[knobs]\na=1\n[clock]\nseed=2\n") == "f:6: seed is given twice");
}

TEST_CASE("config: a line longer than inih's buffer is refused, unless it is a comment") {
  std::string fits = "a=" + std::string(195, 'x');
  Result<Config> config = parse_config("[knobs]\n" + fits + "\n", "f");
  REQUIRE(config);
  CHECK(config->knobs.at(0).value.size() == 195);
  CHECK(refusal("[knobs]\n" + fits + "x\n") == "f:2: longer than 197 characters");
  CHECK(refusal("; " + std::string(5000, 'x') + "\n[clock]\n # " + std::string(300, '[')) ==
        "accepted");
}

TEST_CASE("config: a topology section builds a star, a dumbbell or a leaf-spine network") {
  Result<Config> star = parse_config("[topology]\nkind=star\nhosts=5\nrate=100G\nmtu=1024\n", "f");
  REQUIRE(star);
  CHECK(star->topology->devices.size() == 5);
  CHECK(star->topology->devices.at(4).name == "h4");
  CHECK(star->topology->devices.at(4).ports[0].mtu == 1024);
  CHECK(star->topology->links.size() == 5);
  CHECK(star->topology->links.at(0).b == "sw_0");
  CHECK(star->topology->links.at(0).rate_bps == 100'000'000'000);

  Result<Config> dumbbell =
      parse_config("[topology]\nkind=dumbbell\nhosts=4\ncore_delay=500us\ncore_rate=40G\n", "f");
  REQUIRE(dumbbell);
  CHECK(dumbbell->topology->links.at(1).b == "sw_0");
  CHECK(dumbbell->topology->links.at(2).b == "sw_1");
  const LinkSpec& core = dumbbell->topology->links.at(4);
  CHECK((core.a == "sw_0" && core.b == "sw_1"));
  CHECK((core.delay_ns == 500 * kMicrosecond && core.rate_bps == 40'000'000'000));

  Result<Config> clos =
      parse_config("[topology]\nkind=leaf-spine\nhosts=32\nleaves=4\nspines=3\n", "f");
  REQUIRE(clos);
  CHECK(clos->topology->switches.size() == 7);
  CHECK(clos->topology->links.size() == 32 + 12);
  CHECK(clos->topology->links.at(31).b == "leaf_3");
  CHECK(clos->topology->links.at(32).b == "spine_0");
  CHECK(clos->topology->links.at(32).rate_bps == LinkSpec{}.rate_bps);
}

TEST_CASE("config: a topology section that cannot be built is refused with its line") {
  const struct {
    const char *keys, *why;
  } kBad[] = {
      {"hosts=4", "f:1: [topology] without kind=star, dumbbell, leaf-spine or fat-tree"},
      {"kind=ring", "f:2: kind=ring: star, dumbbell, leaf-spine or fat-tree is wanted"},
      {"kind=dumbbell\nhosts=3", "f:3: hosts=3 do not spread evenly over 2 switches"},
      {"kind=leaf-spine\nhosts=200\nleaves=1\nspines=55",
       "f:1: leaf_0 would have 255 links: a switch has at most 254"},
      {"kind=leaf-spine\nhosts=200\nleaves=1\nspines=18\ncables=4",
       "f:1: leaf_0 would have 272 links: a switch has at most 254"},
      {"kind=leaf-spine\nhosts=255\nleaves=255\nspines=1",
       "f:1: spine_0 would have 255 links: a switch has at most 254"},
      {"kind=star\nhosts=255", "f:1: sw_0 would have 255 links: a switch has at most 254"},
      {"kind=star\nhosts=12801", "f:3: hosts=12801: 1 to 12800 is wanted"},
      {"kind=leaf-spine\nhosts=2000\nleaves=8\nnics=8",
       "f:3: hosts=2000 with nics=8: more than 12800 devices"},
      {"kind=leaf-spine\nleaves=6\nnics=4",
       "f:3: leaves=6 is no multiple of nics=4: each NIC of a host has its leaf"},
      {"kind=leaf-spine\nhosts=3\nleaves=8\nnics=4",
       "f:3: hosts=3 do not spread evenly over 2 groups of leaves"},
      {"kind=fat-tree", "f:2: kind=fat-tree without k="},
      {"kind=fat-tree\nk=5", "f:3: k=5: an even number from 2 to 32 is wanted"},
      {"kind=fat-tree\nk=34", "f:3: k=34: an even number from 2 to 32 is wanted"},
      {"kind=fat-tree\nk=4\nhosts=17", "f:4: hosts=17: a fat-tree of k=4 has at most 16"},
      {"kind=fat-tree\nk=4\ncables=2", "f:2: kind=fat-tree has no cables="},
      {"kind=star\nk=4", "f:2: kind=star has no k="},
      {"kind=star\nnics=2", "f:2: kind=star has no nics=: rails are those of a leaf-spine"},
      {"kind=dumbbell\nagg_delay=1us",
       "f:2: kind=dumbbell has no aggregation switches: core_rate= and core_delay= are those of "
       "the links between switches"},

      {"kind=star\nreconverge=3601s", "f:3: reconverge=3601s is longer than 3600s"},
      {"kind=fat-tree\nk=4\nagg_rate=1", "f:4: agg_rate: rate=1 is outside 1M to 10T"},
  };
  for (const auto& bad : kBad) CHECK(refusal(std::string("[topology]\n") + bad.keys) == bad.why);
  CHECK(parse_config("[topology]\nkind=leaf-spine\nhosts=200\nleaves=1\nspines=54\n", "f"));
  CHECK(refusal("[topology]\nkind=star\nmtu=9000\n") ==
        "f:3: mtu=9000: 256, 512, 1024, 2048 or 4096 is wanted");
  CHECK(refusal("[device a]\n[topology]\nkind=star\n") ==
        "f:2: [topology] excludes devices, switches and links");
  CHECK(refusal("[topology]\nkind=star\nspeed=1\n").starts_with("f:3: unknown key speed"));
}

TEST_CASE("config: a switch has at most 254 links") {
  std::string text = "[device a]\n[switch hub]\n[link a hub]\n";
  for (int i = 2; i <= 254; ++i) text += fmt::format("[switch s{}]\n[link hub s{}]\n", i, i);
  CHECK(parse_config(text, "f"));
  CHECK(refusal(text + "[switch t]\n[link t hub]\n") ==
        "f:511: switch hub has more than 254 links");
}

TEST_CASE("config: a file of more than a mebibyte is read whole, and its last line counts") {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("rocefs-config-{}.ini", ::getpid());
  auto read = [&](const std::string& content) {
    std::ofstream(path) << content;
    Result<Config> config = read_config(path);
    std::filesystem::remove(path);
    return config;
  };
  std::string text = "[flows]\n";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("f{} = write a b size=1M\n", i);
  CHECK(read(text + "x\n").error().reason ==
        path + ":100002: not a [section], key = value or comment");
  CHECK(read(text)->scenario.flows.size() == 100'000);
}

TEST_CASE("config: values that begin with ./ or ../ are paths from the file's directory") {
  const std::filesystem::path directory =
      std::filesystem::canonical(std::filesystem::temp_directory_path());
  const std::string path = directory / fmt::format("rocefs-paths-{}.ini", ::getpid());
  std::ofstream(path) << "[knobs]\na = ./x\nb = x/./y\n[variant v]\nc = ../y\nd = .z\n";
  Result<Config> config = read_config(path);
  std::filesystem::remove(path);
  REQUIRE(config);
  CHECK(config->knobs[0].value == directory.string() + "/./x");
  CHECK(config->knobs[1].value == "x/./y");
  CHECK(config->scenario.variants[0].knobs[0].value == directory.string() + "/../y");
  CHECK(config->scenario.variants[0].knobs[1].value == ".z");
}

TEST_CASE("config: an endless file of NULs is refused without being read to its end") {
  Result<Config> config = read_config("/dev/zero");
  CHECK(config.error().reason == "/dev/zero:1: holds the byte 0x00: not a text file");
}
