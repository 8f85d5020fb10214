// A mount with a directory of flows, and a stranger at its rendezvous.
#pragma once

#include <sys/socket.h>

#include "core/tree/tree.h"
#include "rdma/traffic/traffic.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/ip_text.h"
#include "test/rdma/uplink/uplinked.h"

namespace rocefs::test {

// A host with a directory of flows and a control thread.
class Mount {
 public:
  explicit Mount(unsigned number) : address(loopback_address(number)), host(address) {
    traffic = std::make_unique<Traffic>(
        Traffic::Parts{*host.engine, *host.fabric, tree, files, host.loop, "traffic",
                       [this](const std::string& line) { warnings.push_back(line); }});
    thread_ = std::thread([this] { host.loop.run(); });
  }
  ~Mount() { die(); }
  // As if its process were killed.
  void die() {
    if (!thread_.joinable()) return;
    host.loop.stop();
    thread_.join();
    host.engine->stop();
    traffic.reset();
    host.stop();
  }
  void on_control(std::function<void()> work) {
    std::promise<void> done;
    host.loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  // The errno of a store, 0 if it was accepted.
  int store(const std::string& path, const std::string& text) {
    auto answered = std::make_shared<std::promise<int>>();
    on_control([&] {
      Tree::Node* node = tree.resolve("traffic/" + path);
      if (!node) return answered->set_value(ENOENT);
      node->file->store(text,
                        std::make_shared<Operation>(Caller{::getuid(), ::getgid(), ::getpid()}),
                        [this, answered](Result<void> result) {
                          if (!result) why = result.error().reason;
                          answered->set_value(result ? 0 : result.error().code);
                        });
      ++stores;
    });
    return answered->get_future().get();
  }
  int start(const std::string& line) { return store("start", line); }
  std::string show(const std::string& path) {
    std::string text;
    on_control([&] {
      Tree::Node* node = tree.resolve("traffic/" + path);
      if (!node) return;
      Result<std::string> shown = static_cast<Attribute&>(*node->file).show();
      if (shown) text = *shown;
    });
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  // The flow's last state; the state after `limit` if it is still live.
  std::string outcome(const std::string& name, TimeNs limit = 20 * kSecond) {
    TimeNs end = monotonic_ns() + limit;
    for (;;) {
      std::string state = show(name + "/state");
      bool passing =
          state.empty() || state == "running" || state == "connecting" || state == "waiting";
      if (!passing || monotonic_ns() > end) return state;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void await_state(const std::string& name, const std::string& state) {
    TimeNs end = monotonic_ns() + 20 * kSecond;
    while (show(name + "/state") != state && monotonic_ns() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(show(name + "/state") == state);
  }
  std::string value(const std::string& name, const std::string& key) {
    std::string text = "\n" + show(name + "/result");
    size_t at = text.find("\n" + key + " ");
    if (at == text.npos) return "";
    at += key.size() + 2;
    return text.substr(at, text.find('\n', at) - at);
  }

  const std::string address;
  Host host;
  Tree tree{0, 0};
  CallerFiles files{host.loop, [](const std::string&) {}};
  std::vector<std::string> warnings;  // control thread
  std::unique_ptr<Traffic> traffic;
  std::string why;
  std::atomic<int> stores{0};  // begun

 private:
  std::thread thread_;
};

// A TCP client that may send anything.
class Stranger {
 public:
  // `from`: its address, one of loopback; empty: any.
  explicit Stranger(const std::string& address, const std::string& from = "") {
    Topology topology = *uplink_topology(address);
    sockaddr_storage name{};
    socklen_t length = to_sockaddr({mapped_ipv4(topology.devices[0].ports[0].ipv4), 18516}, name);
    fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!from.empty()) {
      sockaddr_storage own{};
      socklen_t own_length = to_sockaddr({*parse_ip(from), 0}, own);
      REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), own_length) == 0);
    }
    timeval patience{30, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    REQUIRE(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  }
  void say(const std::string& text) {
    (void)!::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // One line without its feed, or its beginning where the other end closes.
  std::string hear_line() {
    std::string line;
    for (char c = 0;;) {
      ssize_t got = ::recv(fd_.get(), &c, 1, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || c == '\n') return line;
      line += c;
    }
  }
  // All text until the other end closes.
  std::string hear() {
    std::string all;
    char buffer[1024];
    for (;;) {
      ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;  // io_uring interrupts the thread for its work
      if (got <= 0) return all;
      all.append(buffer, static_cast<size_t>(got));
    }
  }

 private:
  Fd fd_;
};

inline const std::string kOffer =
    "flow 1 name=s op=write size=4096 count=10 window=128 timeout=14 retry=7 verify=1 file=0 "
    "seed=1 mtu=4096 address=0 key=0 bytes=0 qps=300:1";

}  // namespace rocefs::test
