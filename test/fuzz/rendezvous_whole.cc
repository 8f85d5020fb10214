// The rendezvous as a whole: a mount with untrusted peers at its port, and with flows of its own to
// them. Connections, files and the control thread's loop are real; the engine runs on this thread,
// and the input advances time. The mount's cable loses everything: its queue pairs receive only the
// input.
//
// An input is lines: a letter for the action (see do_line), a digit for the peer.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/tree/tree.h"
#include "rdma/traffic/traffic.h"
#include "rdma/uapi/registers.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/uplink/uplink.h"
#include "rdma/wire/psn.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/wrapped.h"

using namespace rocefs;

namespace {

constexpr uint16_t kPort = 18516;
constexpr size_t kPeers = 4;

// 127.… addresses that no other process takes.
Ip own_loopback(uint8_t host) {
  auto pid = static_cast<unsigned>(::getpid());
  return mapped_ipv4(
      {127, static_cast<uint8_t>(64 + (pid >> 8) % 128), static_cast<uint8_t>(pid % 256), host});
}

Fd tcp_at(const UdpAddress& at) {
  sockaddr_storage name{};
  socklen_t length = to_sockaddr(at, name);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  fuzz::require(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  return fd;
}

// Avoids TIME_WAIT of the port.
void reset_connection(Fd& fd) {
  if (!fd) return;
  linger now{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd.reset();
}

// Files and listeners that all inputs use.
struct Surroundings {
  std::string directory = "/tmp/rocefs-fuzz-XXXXXX";
  std::array<Fd, kPeers> listeners;

  Surroundings() {
    fuzz::require(::mkdtemp(directory.data()) != nullptr);
    Fd in(::open((directory + "/in").c_str(), O_WRONLY | O_CREAT, 0600));
    std::string bytes(5000, 'x');
    fuzz::require(::write(in.get(), bytes.data(), bytes.size()) == 5000);
    for (size_t i = 0; i < kPeers; ++i) {
      listeners[i] = tcp_at({own_loopback(static_cast<uint8_t>(10 + i)), kPort});
      fuzz::require(::listen(listeners[i].get(), 16) == 0);
    }
  }
  ~Surroundings() {
    for (const char* name : {"/in", "/out"}) ::unlink((directory + name).c_str());
    ::rmdir(directory.c_str());
  }
};

Surroundings& surroundings() {
  static Surroundings all;
  return all;
}

Topology lossy_topology() {
  Topology topology = *uplink_topology(ip_text(own_loopback(2)));
  for (LinkSpec& link : topology.links) link.loss = 1;
  return topology;
}

class World {
 public:
  World() {
    auto warn = [](const std::string& line) {
      fuzz::require(line.find('\n') == line.npos && line.size() < 512);
    };
    for (auto& device : fabric_.devices())
      fuzz::require(bool(device->registers().open(ClockMode::kReal)));
    fuzz::require(bool(fabric_.uplink("uplink")->open(*engine_, loop_, warn)));
    engine_->io().enable();
    traffic_ = std::make_unique<Traffic>(
        Traffic::Parts{*engine_, fabric_, tree_, files_, loop_, "traffic", warn});
    entries_ = tree_.resolve("traffic")->children.size();
  }

  void do_line(std::string_view line) {
    if (line.size() < 2) return;
    Peer& peer = peers_[static_cast<uint8_t>(line[1]) % kPeers];
    std::string_view rest = line.substr(2);
    switch (line[0]) {
      case 'c':
        connect(peer);
        break;
      case 's':
        say(peer.caller, std::string(rest) + "\n");
        break;
      case 'p':
        say(peer.caller, rest);
        break;
      case 'o':
        say(peer.caller, offer(rest));
        break;
      case 'S':
        say(peer.called, std::string(rest) + "\n");
        break;
      case 'e':
        ::shutdown(peer.caller.get(), SHUT_WR);
        break;
      case 'x':
        peer.caller.reset();
        break;
      case 'X':
        peer.called.reset();
        break;
      case 'r':
        reset_connection(peer.caller);
        break;
      case 'f':
        start(peer, rest);
        break;
      case 'k':
        store(std::string(rest) + "/stop", "1");
        break;
      case 'q':
        show_all();
        break;
      case 't':
        pass(line[1]);
        break;
      case 'd':
        device().leave();
        break;
      case 'a':
        if (!device().present()) device().arrive();
        break;
      case 'z':
        reset();
        break;
      case 'b':
        packet(line[1], rest);
        break;
    }
    settle();
  }

  // Closes all peers; no state must be left.
  void finish() {
    for (Peer& peer : peers_) {
      reset_connection(peer.caller);
      reset_connection(peer.called);
    }
    settle();
    show_all();
    reset();
    settle();
    fuzz::require(engine_->outstanding().flows == 0 && engine_->outstanding().settling == 0);
    fuzz::require(tree_.resolve("traffic")->children.size() == entries_);
    for (uint32_t i = 0; i < ROCEFS_MAX_QPS; ++i) {
      fuzz::require(device().find_qp(ROCEFS_FIRST_QPN + i) == nullptr);
    }
    pass('6');  // the last messages have left
    settle();
    std::string connections = show("traffic/exchange");
    fuzz::require(connections.find("\nconnections 0") != connections.npos);
    for (Peer& peer : peers_) reset_connection(peer.called);
    traffic_.reset();
  }

 private:
  struct Peer {
    Ip address;
    Fd caller, called;  // connections made by the mount, and to it
  };

  Device& device() { return *fabric_.device("mb_0"); }

  void connect(Peer& peer) {
    reset_connection(peer.caller);
    peer.caller = tcp_at({peer.address, 0});
    sockaddr_storage name{};
    socklen_t length = to_sockaddr({own_loopback(2), kPort}, name);
    (void)::connect(peer.caller.get(), reinterpret_cast<sockaddr*>(&name), length);
  }
  static void say(const Fd& fd, std::string_view text) {
    if (fd) (void)!::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // A valid offer, changed by `with`, KEY=VALUE …; qps=*N are N of them.
  static std::string offer(std::string_view with) {
    std::vector<std::pair<std::string, std::string>> words = {
        {"name", "s"},     {"op", "write"},  {"size", "4096"}, {"count", "10"}, {"window", "128"},
        {"timeout", "14"}, {"retry", "7"},   {"verify", "1"},  {"file", "0"},   {"seed", "1"},
        {"mtu", "4096"},   {"address", "0"}, {"key", "0"},     {"bytes", "0"},  {"qps", "300:1"}};
    for (std::string_view word : split(with, " ")) {
      size_t equals = std::min(word.find('='), word.size());
      for (auto& [key, value] : words) {
        if (key == word.substr(0, equals)) value = word.substr(std::min(equals + 1, word.size()));
      }
    }
    std::string line = "flow 1";
    for (auto& [key, value] : words) line += " " + key + "=" + value;
    if (size_t star = line.find("qps=*"); star != line.npos) {
      Result<uint64_t> wanted = kstrtou64(line.substr(star + 5), 10);
      uint64_t many = wanted ? std::min<uint64_t>(*wanted, 2000) : 1;
      line.resize(star + 4);
      for (uint64_t i = 0; i < many; ++i) line += fmt::format("{}{}:1", i ? "," : "", 300 + i);
    }
    return line + "\n";
  }

  // $ is the directory with the files, @ the peer's address.
  void start(const Peer& peer, std::string_view with) {
    std::string line;
    for (char c : with) {
      line += c == '$'   ? surroundings().directory
              : c == '@' ? ip_text(peer.address)
                         : std::string(1, c);
    }
    Result<FlowSpec> spec = parse_flow(line);
    // Bounds the work of this mount's own flows.
    if (spec && (spec->size > 65536 || spec->qps > 64 || spec->count > 1000)) return;
    // Allows only files of the test's directory.
    const std::string& directory = surroundings().directory;
    bool ours = spec && (spec->input.empty() || spec->input == directory + "/in") &&
                (spec->output.empty() || spec->output == directory + "/out");
    if (spec && !ours) return;
    store("start", line);
  }
  void store(const std::string& path, const std::string& text) {
    Tree::Node* node = tree_.resolve("traffic/" + path);
    if (!node || node->kind != Tree::Kind::kFile) return;
    node->file->store(
        text, std::make_shared<Operation>(Caller{::getuid(), ::getgid(), ::getpid()}),
        [](Result<void> result) { fuzz::require(result || result.error().code > 0); });
  }
  std::string show(const std::string& path) {
    Tree::Node* node = tree_.resolve(path);
    fuzz::require(node && node->kind == Tree::Kind::kFile);
    Result<std::string> text = static_cast<Attribute&>(*node->file).show();
    fuzz::require(bool(text));
    return *text;
  }
  void show_all() {
    std::vector<std::string> flows;
    for (Ino ino : tree_.resolve("traffic")->children) {
      Tree::Node* node = tree_.find(ino);
      if (node->kind == Tree::Kind::kDirectory) flows.push_back("traffic/" + node->name);
    }
    for (const std::string& flow : flows) {
      for (const char* file : {"/state", "/result", "/rate", "/window"}) (void)show(flow + file);
    }
  }
  void reset() {
    traffic_->begin_reset();
    traffic_->stop_all();
    traffic_->finish_reset();
  }

  // 10^digit microseconds, 100 s at most.
  void pass(char digit) {
    TimeNs time = kMicrosecond;
    for (int i = 0; i < (digit - '0') % 9; ++i) time *= 10;
    Scheduler& scheduler = engine_->scheduler();
    TimeNs end = scheduler.now() + time;
    for (int events = 0; scheduler.next() <= end; ++events) {
      if (events > 100'000) return;
      scheduler.run_one(end);
      if (events % 1000 == 0) settle();
    }
    scheduler.pass(end);
  }

  // Sends a packet to the queue pair with that digit, from its far end with the expected PSN: an
  // opcode, the distance from that PSN, whether an RETH names the flow's memory, and the octets
  // after the BTH.
  void packet(char digit, std::string_view said) {
    Qp* qp = device().find_qp(ROCEFS_FIRST_QPN + (static_cast<uint8_t>(digit) - '0') % 64);
    if (!qp || said.size() < 3 || !qp->receives_packets()) return;
    std::vector<uint8_t> bytes(wire::kBthLen);
    bytes[0] = static_cast<uint8_t>(said[0]);
    bytes[2] = bytes[3] = 0xff;
    uint64_t psn = qp->responder().expected() + static_cast<uint8_t>(said[1]) - '0';
    for (size_t i = 0; i < 3; ++i) {
      bytes[5 + i] = static_cast<uint8_t>(qp->number() >> (16 - 8 * i));
      bytes[9 + i] = static_cast<uint8_t>(psn >> (16 - 8 * i));
    }
    bytes[8] = static_cast<uint8_t>(said[2]) & 0x80;
    for (char c : said.substr(3)) bytes.push_back(static_cast<uint8_t>(c));
    // The regions of flows: keys and addresses are the same in every run.
    if (said[2] & 1 && bytes.size() >= wire::kBthLen + 16) {
      uint32_t key = static_cast<uint8_t>(said[3] & 7) << 8 | static_cast<uint8_t>(said[4]);
      for (size_t i = 0; i < 4; ++i) {
        bytes[wire::kBthLen + 8 + i] = static_cast<uint8_t>(key >> (24 - 8 * i));
      }
    }
    Ip source = qp->type() == QpType::kUd ? peers_[0].address : qp->attributes().path.remote;
    device().port().receive_bytes(fuzz::wrapped(bytes, source, own_loopback(2)),
                                  engine_->scheduler().now());
  }

  // Waits until messages are received and answered, and earlier file requests as well.
  void settle() {
    for (int i = 0; i < 4; ++i) {
      CallerFilePtr looked =
          files_.open(own_identity(), surroundings().directory, FileUse::kDirectory,
                      [this](Result<void>) { loop_.stop(); });
      loop_.run();
    }
    for (size_t i = 0; i < kPeers; ++i) {
      for (Fd came; (came = Fd(::accept4(surroundings().listeners[i].get(), nullptr, nullptr,
                                         SOCK_CLOEXEC | SOCK_NONBLOCK)));) {
        reset_connection(peers_[i].called);
        peers_[i].called = std::move(came);
      }
      for (const Fd* fd : {&peers_[i].caller, &peers_[i].called}) hear(*fd);
    }
  }
  // Checks that no message contains a path of files.
  void hear(const Fd& fd) {
    if (!fd) return;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      std::string_view heard(buffer, static_cast<size_t>(got));
      fuzz::require(heard.find(surroundings().directory) == heard.npos);
    }
  }

  PollLoop loop_;
  CallerFiles files_{loop_, [](const std::string&) {}};
  std::unique_ptr<Engine> engine_ = std::move(*Engine::create({}, loop_));
  Fabric fabric_{lossy_topology(), 1, engine_->scheduler(), engine_->outstanding()};
  Tree tree_{0, 0};
  std::array<Peer, kPeers> peers_ = [] {
    std::array<Peer, kPeers> peers;
    for (size_t i = 0; i < kPeers; ++i)
      peers[i].address = own_loopback(static_cast<uint8_t>(10 + i));
    return peers;
  }();
  std::unique_ptr<Traffic> traffic_;
  size_t entries_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  for (int lines = 0; lines < 64 && !input.empty(); ++lines) {
    size_t end = std::min(input.find('\n'), input.size());
    world.do_line(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  world.finish();
  return 0;
}
