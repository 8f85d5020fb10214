#include "core/config/config.h"

#include <ini.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "core/base/hash.h"
#include "core/base/kstrto.h"
#include "core/base/units.h"
#include "core/config/names.h"
#include "core/config/topology_shapes.h"

namespace rocefs {
namespace {

// Lines are numbered in an int, here and in inih.
constexpr size_t kMaxFile = std::numeric_limits<int>::max();
// inih's own line buffer is INI_MAX_LINE (200) with its newline and NUL: it would cut longer lines.
constexpr size_t kMaxLine = 197;
// inih also splits at ':', which knob paths contain (devices/pci0000:2b/...). This character
// replaces ':' while inih has the line; no file may contain it.
constexpr char kColon = '\x1f';

// Collects the content of the file; every error has its line.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text) {
    config_.name = name;
    config_.hash = fnv1a64(text);
    config_.text = text;
  }

  Result<Config> read() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    if (Result<void> checked = check_bytes(); !checked) return checked.error();
    int rc = ini_parse_stream(&Reader::next_line, this, &Reader::on_pair, this);
    // A broken line may make later good ones look wrong: report the first.
    bool syntax = rc > 0 && (error_.empty() || rc < error_line_);
    if (syntax) return fail(rc, "not a [section], key = value or comment");
    if (!error_.empty()) return fail(error_line_, error_);
    if (rc < 0) return fail(0, "out of memory");
    if (Result<void> checked = check_graph(); !checked) return checked.error();
    if (Result<void> checked = check_run(); !checked) return checked.error();
    return std::move(config_);
  }

 private:
  Error fail(int line, const std::string& why) {
    if (line == 0) return errorf(EINVAL, "{}: {}", config_.name, why);
    return errorf(EINVAL, "{}:{}: {}", config_.name, line, why);
  }
  bool refuse(int line, std::string why) {
    if (error_.empty()) {
      error_ = std::move(why);
      error_line_ = line;
    }
    return false;
  }

  // Vertical tabs and the like would be indentation to inih; escape sequences would reach the
  // terminal.
  Result<void> check_bytes() {
    int line = 1;
    for (size_t i = 0; i < text_.size(); ++i) {
      auto c = static_cast<unsigned char>(text_[i]);
      bool ends_line = c == '\n' || (c == '\r' && text_.substr(i + 1, 1) == "\n");
      if ((c < 0x20 && c != '\t' && !ends_line) || c == 0x7f) {
        return fail(line, fmt::format("holds the byte 0x{:02x}: not a text file", c));
      }
      line += c == '\n';
    }
    return {};
  }

  // Reader for inih: one call is one line, which counts the lines. Strips indentation, or inih
  // would take the line as the continuation of a value, and keeps an empty section.
  static char* next_line(char* buffer, int size, void* self) {
    auto* reader = static_cast<Reader*>(self);
    if (reader->at_ >= reader->text_.size()) return nullptr;
    ++reader->line_;
    size_t end = std::min(reader->text_.find('\n', reader->at_), reader->text_.size());
    std::string_view line = reader->text_.substr(reader->at_, end - reader->at_);
    reader->at_ = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with(';') || line.starts_with('#')) line = {};  // may have any length
    if (line.size() > kMaxLine || line.size() + 2 > static_cast<size_t>(size)) {
      reader->refuse(reader->line_, fmt::format("longer than {} characters", kMaxLine));
      line = {};
    }
    if (!line.empty() && line.front() == '[') reader->enter(line);
    std::copy(line.begin(), line.end(), buffer);
    size_t equals = line.find('=');
    if (reader->has_paths() && equals != line.npos && line.front() != '[') {
      std::replace(buffer, buffer + equals, ':', kColon);
    }
    buffer[line.size()] = '\n';
    buffer[line.size() + 1] = '\0';
    return buffer;
  }

  bool has_paths() const { return kind_ == "knobs" || Scenario::has_section(kind_); }

  void enter(std::string_view line) {
    size_t close = line.find(']');
    if (close == line.npos) return;  // inih reports it
    std::string section(line.substr(1, close - 1));
    std::istringstream words(section);
    std::string kind, first, second, extra;
    words >> kind >> first >> second >> extra;
    size_t behind = line.find_first_not_of(" \t\r", close + 1);
    if (behind != line.npos && line[behind] != ';' && line[behind] != '#') {
      refuse(line_, fmt::format("text after [{}]", section));
    }
    if (kind == "clock" || kind == "nic" || kind == "knobs" || kind == "topology") {
      if (kind == "topology") shape_line_ = line_;
      if (!first.empty()) refuse(line_, fmt::format("[{}] takes no name", kind));
    } else if (Scenario::has_section(kind) && second.empty()) {
      Result<void> entered = config_.scenario.enter(kind, first, line_);
      if (!entered) refuse(line_, entered.error().reason);
      kind_ = kind;
      if (kind == "variant" || kind == "load") keys_[kind].clear();
      return;
    } else if (kind == "device" && second.empty()) {
      add_device(first);
    } else if (kind == "port" && !second.empty() && extra.empty()) {
      enter_port(first, second);
    } else if (kind == "switch" && second.empty()) {
      claim_name(first);
      if (topology_.switches.size() == kMaxSwitches)
        refuse(line_, fmt::format("more than {} switches", kMaxSwitches));
      topology_.switches.push_back({first});  // with a name or not: its keys follow
    } else if (kind == "uplink" && second.empty()) {
      if (!claim_name(first)) return;
      topology_.uplinks.push_back({.name = first, .line = line_});
      uplink_lines_[first] = line_;
    } else if (kind == "link" && !second.empty() && extra.empty()) {
      topology_.links.push_back({end_name(first), end_name(second)});
      link_lines_.push_back(line_);
    } else {
      refuse(line_,
             fmt::format(
                 "unknown section [{}]: clock, nic, topology, device NAME, port NAME 2, switch "
                 "NAME, uplink NAME, link A B, knobs, sim, flows, load NAME, at, inject, sample, "
                 "plot or variant NAME is wanted",
                 section));
    }
    kind_ = kind;
    if (kind == "clock" || kind == "nic" || kind == "knobs" || kind == "topology") return;
    topology_given_ = true;
    keys_[kind].clear();
  }

  bool claim_name(const std::string& name) {
    if (!valid_node_name(name)) {
      return refuse(line_, fmt::format("{} cannot be a name", quoted(name)));
    }
    if (!names_.insert(name).second) {
      return refuse(line_, fmt::format("{} exists already", name));
    }
    return true;
  }

  // Defaults differ from device to device.
  void add_device(const std::string& name) {
    if (!claim_name(name)) return;
    if (!valid_device_name(name)) {
      return void(refuse(line_, fmt::format("{} is the word for all devices", name)));
    }
    size_t n = topology_.devices.size() + 1;
    if (n > kMaxDevices)
      return void(refuse(line_, fmt::format("more than {} devices", kMaxDevices)));
    devices_[name] = topology_.devices.size();
    topology_.devices.push_back(nth_device(name, n));
    port_lines_[name] = line_;
  }

  void add_second_port(DeviceSpec& device) {
    device.ports.push_back(second_port(topology_.devices.size()));
    std::string name = PortName{device.name, 2}.text();
    names_.insert(name);
    port_lines_[name] = line_;
  }

  void enter_port(const std::string& name, const std::string& number) {
    auto it = devices_.find(name);
    if (it == devices_.end()) return void(refuse(line_, fmt::format("no device {} before", name)));
    DeviceSpec& device = topology_.devices[it->second];
    if (number != "2") return void(refuse(line_, "port 2 is wanted: port 1 belongs to [device]"));
    if (device.ports.size() < 2) {
      return void(refuse(line_, fmt::format("{} has one port: ports=2 is missing", name)));
    }
    if (!second_ports_.insert(name).second) {
      return void(refuse(line_, fmt::format("{}/2 exists already", name)));
    }
    port_ = &device.ports[1];
    port_lines_[PortName{name, 2}.text()] = line_;
  }

  // Name of a link's end.
  static std::string end_name(const std::string& said) {
    std::optional<PortName> port = parse_port_name(said);
    return port ? port->text() : said;
  }

  static int on_pair(void* self, const char* section, const char* key, const char* value) {
    auto* reader = static_cast<Reader*>(self);
    if (!reader->error_.empty()) return 1;
    std::string name = key;
    std::replace(name.begin(), name.end(), kColon, ':');
    Result<void> taken = reader->take(section, name, value);
    if (!taken) reader->refuse(reader->line_, taken.error().reason);
    return 1;
  }

  Result<void> take(std::string_view section, const std::string& key, std::string_view value) {
    if (section.empty()) return errorf(EINVAL, "{} comes before any section", key);
    if (kind_ != "at" && !keys_[kind_].insert(key).second)
      return errorf(EINVAL, "{} is given twice", key);
    if (kind_ == "clock") return take_clock(key, value);
    if (kind_ == "nic") return take_nic(key, value);
    if (kind_ == "device") return take_device(topology_.devices.back(), key, value);
    if (kind_ == "port") return take_port(*port_, key, value);
    if (kind_ == "switch") return set_switch_key(topology_.switches.back(), key, value);
    if (kind_ == "link") return set_link_key(topology_.links.back(), key, value);
    if (kind_ == "uplink") return set_uplink_key(topology_.uplinks.back(), key, value);
    if (kind_ == "topology") {
      shape_lines_[key] = line_;
      return set_shape_key(shape_, key, value);
    }
    if (kind_ == "sim") sim_lines_[key] = line_;
    if (kind_ == "knobs") return take_knobs(key, value);
    if (has_paths()) return config_.scenario.take(kind_, {key, std::string(value), line_});
    return errorf(EINVAL, "unknown key {} in [{}]", key, section);
  }

  Result<void> take_knobs(const std::string& key, std::string_view value) {
    Result<std::vector<Scenario::Line>> lines =
        config_.scenario.expand({key, std::string(value), line_});
    if (!lines) return lines.error();
    for (const Scenario::Line& line : *lines) {
      config_.knobs.push_back({line.key, line.value, line.line});
    }
    return {};
  }

  Result<void> take_clock(const std::string& key, std::string_view value) {
    if (key == "mode") {
      if (value != "real" && value != "virtual") {
        return errorf(EINVAL, "mode={}: real or virtual is wanted", value);
      }
      config_.clock_line = line_;
      config_.clock = value == "real" ? ClockMode::kReal : ClockMode::kVirtual;
      return {};
    }
    uint64_t number = 0;
    if (key == "seed" || key == "dilation") {
      if (Result<void> kept = keep(key, kstrtou64(value, 0), number); !kept) return kept;
      if (key == "dilation" && (number < 1 || number > 1'000'000)) {
        return errorf(EINVAL, "dilation={}: 1 to 1000000 is wanted", value);
      }
      (key == "seed" ? config_.seed : config_.dilation) = number;
      if (key == "dilation") config_.dilation_line = line_;
      return {};
    }
    return errorf(EINVAL, "unknown key {} in [clock]: mode, seed or dilation is wanted", key);
  }

  Result<void> take_nic(const std::string& key, std::string_view value) {
    if (key == "mad_semantics") {
      if (value != "doc" && value != "ofed4" && value != "ofed25") {
        return errorf(EINVAL, "mad_semantics={}: doc, ofed4 or ofed25 is wanted", value);
      }
      config_.mad_semantics = value;
      return {};
    }
    if (key != "mgmt") {
      return errorf(EINVAL, "unknown key {} in [nic]: mgmt or mad_semantics is wanted", key);
    }
    if (value != "default" && value != "none") {
      return errorf(EINVAL, "mgmt={}: default or none is wanted", value);
    }
    config_.mgmt = value == "default";
    return {};
  }

  Result<void> take_device(DeviceSpec& device, const std::string& key, std::string_view value) {
    if (key == "pci") return set_pci(value, device.pci);
    if (key == "host") {
      if (!valid_node_name(value)) return errorf(EINVAL, "host={}: not a name", value);
      device.host = value;
      return {};
    }
    if (key == "ports") {
      if (value != "1" && value != "2") return errorf(EINVAL, "ports={}: 1 or 2 is wanted", value);
      if (value == "2") add_second_port(device);
      return {};
    }
    return take_port(device.ports[0], key, value);
  }

  Result<void> take_port(PortSpec& port, const std::string& key, std::string_view value) {
    std::string text(value);
    if (key == "mac") return set_mac(value, port.mac);
    if (key == "netdev") {
      if (Result<void> checked = check_netdev(value); !checked) return checked;
      port.netdev = text;
      return {};
    }
    if (key == "ip") {
      port.ipv4_line = line_;
      return set_ipv4(text, port.ipv4);
    }
    if (key == "ip6") return set_ipv6(text, port.ipv6);
    if (key == "mtu") return set_mtu(value, port.mtu);
    return errorf(EINVAL, "unknown key {} in [{}]: {}netdev, mac, ip, ip6 or mtu is wanted", key,
                  kind_, kind_ == "device" ? "pci, host, ports, " : "");
  }

  // A reason that begins with KEY= is about that key.
  int line_of_shape(const std::string& reason) const {
    auto key = shape_lines_.find(reason.substr(0, reason.find('=')));
    return key == shape_lines_.end() ? shape_line_ : key->second;
  }

  Result<void> check_run() {
    auto limit = sim_lines_.find("limit");
    if (limit == sim_lines_.end() || !sim_lines_.contains("until")) return {};
    return fail(limit->second, "limit= is for a run without until=, which ends it");
  }

  Result<void> check_graph() {
    if (shape_line_ > 0) {
      if (topology_given_)
        return fail(shape_line_, "[topology] excludes devices, switches and links");
      Result<Topology> built = build_shape(shape_);
      if (!built) return fail(line_of_shape(built.error().reason), built.error().reason);
      config_.topology = std::move(*built);
      return {};
    }
    if (!topology_given_) return {};
    if (topology_.devices.empty()) return fail(0, "the topology has no device");
    if (Result<void> checked = check_links(); !checked) return checked;
    if (Result<void> checked = check_devices(); !checked) return checked;
    config_.topology = std::move(topology_);
    return {};
  }

  Result<void> check_links() {
    std::set<std::pair<std::string, std::string>> pairs;
    std::set<std::string> directories;
    std::map<std::string, size_t> switch_ports;
    for (size_t i = 0; i < topology_.links.size(); ++i) {
      const LinkSpec& link = topology_.links[i];
      int line = link_lines_[i];
      for (const std::string& end : {link.a, link.b}) {
        if (!names_.contains(end))
          return fail(line, fmt::format("no device, switch or uplink {}", end));
        if (uplink_lines_.contains(end) && !cabled_.insert(end).second) {
          return fail(line, fmt::format("the uplink {} has its cable already", end));
        }
        if (port_lines_.contains(end) && !cabled_.insert(end).second) {
          return fail(line, fmt::format("the port of {} has its cable already", end));
        }
        if (!port_lines_.contains(end) && ++switch_ports[end] > kMaxSwitchPorts) {
          return fail(line, fmt::format("switch {} has more than {} links", end, kMaxSwitchPorts));
        }
      }
      if (uplink_lines_.contains(link.a) && uplink_lines_.contains(link.b)) {
        return fail(line, "a link from an uplink to an uplink");
      }
      if (link.a == link.b) return fail(line, "a link from a node to itself");
      if (!pairs.insert(std::minmax(link.a, link.b)).second) {
        return fail(line, fmt::format("{} and {} are already linked", link.a, link.b));
      }
      // a-b with c, and a with b-c, would both be links/a-b-c.
      for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
        std::string directory = link_name(from, to);
        if (!directories.insert(directory).second) {
          return fail(line, fmt::format("two links would be named {}", directory));
        }
      }
    }
    for (const auto& [name, line] : uplink_lines_) {
      if (!cabled_.contains(name)) return fail(line, fmt::format("{} has no link", name));
    }
    return {};
  }

  Result<void> check_devices() {
    std::set<std::pair<std::string_view, std::string>> taken;
    auto bytes = [](const auto& address) { return std::string(address.begin(), address.end()); };
    for (const DeviceSpec& device : topology_.devices) {
      if (!taken.insert({"pci", device.pci}).second) {
        return fail(port_lines_[device.name],
                    fmt::format("{} has the pci of another device", device.name));
      }
      for (unsigned number = 1; number <= device.ports.size(); ++number) {
        const PortSpec& port = device.ports[number - 1];
        std::string name = PortName{device.name, number}.text();
        int line = port_lines_[name];
        if (!cabled_.contains(name)) return fail(line, fmt::format("{} has no link", name));
        std::vector<std::pair<std::string_view, std::string>> unique = {
            {"netdev", port.netdev}, {"mac", bytes(port.mac)}, {"ip", bytes(port.ipv4)}};
        if (port.ipv6) unique.emplace_back("ip6", bytes(*port.ipv6));
        for (const auto& [what, value] : unique) {
          if (!taken.insert({what, value}).second) {
            return fail(line, fmt::format("{} has the {} of another port", name, what));
          }
        }
      }
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 0;
  Config config_;
  Topology topology_;
  bool topology_given_ = false;
  Shape shape_;
  int shape_line_ = 0;                                  // 0: no shape
  std::map<std::string, int> shape_lines_, sim_lines_;  // of keys
  std::string kind_;                                    // kind of the current section
  std::map<std::string, std::set<std::string>> keys_;   // keys in it
  std::set<std::string> names_, cabled_;
  std::map<std::string, size_t> devices_;  // index in topology_.devices
  std::set<std::string> second_ports_;     // second ports with a section of their own
  PortSpec* port_ = nullptr;               // port of the current section
  std::map<std::string, int> port_lines_;  // by PortName::text()
  std::map<std::string, int> uplink_lines_;
  std::vector<int> link_lines_;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace

Result<Config> parse_config(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

namespace {

// Values that begin with ./ or ../ are paths from the file's directory: no other value does.
void resolve_paths(Config& config) {
  std::unique_ptr<char, decltype(&std::free)> directory(
      ::realpath(config.directory.empty() ? "." : config.directory.c_str(), nullptr), &std::free);
  if (!directory) return;
  auto resolve = [&](std::vector<KnobSetting>& settings) {
    for (KnobSetting& setting : settings) {
      if (!setting.value.starts_with("./") && !setting.value.starts_with("../")) continue;
      setting.value = fmt::format("{}/{}", directory.get(), setting.value);
    }
  };
  resolve(config.knobs);
  for (Scenario::Variant& variant : config.scenario.variants) resolve(variant.knobs);
}

}  // namespace

Result<Config> read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errorf(errno, "{}: {}", path, std::strerror(errno));
  std::string text;
  constexpr size_t kChunk = 1 << 20;
  // A chunk with a NUL ends the reading: parse_config() refuses it, and an endless device such as
  // /dev/zero does not fill the memory before.
  for (bool is_text = true; file && is_text;) {
    size_t before = text.size();
    if (before > kMaxFile) return errorf(EFBIG, "{}: larger than {} bytes", path, kMaxFile);
    text.resize(before + kChunk);
    errno = 0;
    file.read(text.data() + before, kChunk);
    if (file.bad() || errno == EISDIR) {
      return errorf(errno ? errno : EIO, "{}: {}", path, std::strerror(errno ? errno : EIO));
    }
    text.resize(before + static_cast<size_t>(file.gcount()));
    is_text = text.find('\0', before) == text.npos;
  }
  Result<Config> config = parse_config(text, path);
  if (config) {
    config->directory = path.substr(0, path.rfind('/') + 1);
    resolve_paths(*config);
  }
  return config;
}

}  // namespace rocefs
