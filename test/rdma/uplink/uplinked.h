// Two machines on one wire: an engine each, with the default topology and an uplink, joined by the
// kernel's loopback interface. Addresses differ from process to process.
#pragma once

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/config/topology.h"
#include "core/loop/engine.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/uplink/uplink.h"
#include "test/rdma/world.h"

namespace rocefs::test {

inline std::string loopback_address(unsigned host) {
  unsigned pid = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.{}", 64 + (pid >> 8) % 128, pid % 256, host);
}

class Host {
 public:
  static constexpr uint64_t kArea = 1 << 20;
  static constexpr uint64_t kAddress = 0x400000;
  static constexpr uint32_t kPd = 3;

  explicit Host(const std::string& address, Uplink::At at = Uplink::At::kStart,
                SavedAddresses* saved = nullptr) {
    auto created = Engine::create({}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    Result<Topology> topology = uplink_topology(address);
    REQUIRE(topology);
    fabric = std::make_unique<Fabric>(*topology, 1, engine->scheduler(), engine->outstanding());
    for (auto& one : fabric->devices()) REQUIRE(one->registers().open(ClockMode::kReal));
    auto warn = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      warnings_.push_back(line);
    };
    Result<void> opened = uplink().open(*engine, loop, warn, at, saved);
    if (!opened) FAIL(opened.error().reason);
    memory = LocalMemory::create(kArea);
    key = *device().memory().add(memory, kAddress, kArea, kPd,
                                 kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
    QpInit init;
    init.pd = kPd;
    init.send_cq = init.receive_cq = &queue;
    init.send_depth = init.receive_depth = 512;
    qp = *device().create_qp(init);
    engine->start();
  }
  // Runs the control loop until stop().
  void run_control() {
    control_ = std::thread([this] { loop.run(); });
  }
  ~Host() { stop(); }
  // Ends everything, as if the machine had gone.
  void stop() {
    if (!qp) return;
    if (control_.joinable()) {
      loop.stop();
      control_.join();
    }
    engine->stop();
    device().destroy_qp(*std::exchange(qp, nullptr));
    fabric.reset();
    engine.reset();
  }

  Device& device() { return *fabric->device("mb_0"); }
  PortCounters& counters() { return device().port().counters(); }
  Uplink& uplink() { return *fabric->uplink("uplink"); }
  // From another thread than the core, after the core has written.
  std::span<uint8_t> bytes() {
    on_core([] {});
    return memory->bytes();
  }
  Ip gid() { return gids_of(device().port().spec())[1]; }
  std::vector<std::string> warnings() {
    std::lock_guard lock(mutex_);
    return warnings_;
  }

  // Waits, at most ten seconds.
  bool comes(const std::function<bool()>& what) {
    for (TimeNs end = monotonic_ns() + 10 * kSecond; monotonic_ns() < end; ::usleep(500)) {
      if (what()) return true;
    }
    return what();
  }
  // Whether `line` is the latest warning.
  bool says(const std::string& line) {
    return comes([&] { return !warnings().empty() && warnings().back() == line; });
  }
  void on_core(std::function<void()> work) {
    std::promise<void> done;
    Task task = [&] {
      work();
      done.set_value();
    };
    if (!engine->post(task)) std::abort();
    done.get_future().wait();
  }
  void connect(Host& peer, const QpAttributes& attributes = {}) {
    connect_to(peer.gid(), peer.qp->number(), attributes);
  }
  void connect_to(const Ip& remote, uint32_t qpn, QpAttributes attributes) {
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    attributes.remote_qpn = qpn;
    attributes.path.local = is_mapped_ipv4(remote) ? gid() : gids_of(device().port().spec())[2];
    attributes.path.remote = remote;
    attributes.path_mtu = device().port().mtu();
    bool up = false;
    on_core([&] { up = bool(qp->bring_up(attributes)); });
    REQUIRE(up);
  }
  SendRequest request(SendOp op, Host& peer, uint64_t from, uint64_t to, uint32_t length) {
    peer.on_core([] {});  // the core sees the changed bytes
    SendRequest request;
    request.op = op;
    request.sges = Sge{kAddress + from, length, key};
    request.remote_address = kAddress + to;
    request.rkey = peer.key;
    return request;
  }
  ReceiveRequest receive(uint64_t at, uint32_t length) {
    ReceiveRequest request;
    request.sges = Sge{kAddress + at, length, key};
    return request;
  }
  void post(auto request) {
    bool posted = false;
    on_core([&] { posted = bool(qp->post(request)); });
    REQUIRE(posted);
  }
  // Completions that come within `limit` of wall time.
  std::vector<Completion> await(size_t count, TimeNs limit = 10 * kSecond) {
    std::vector<Completion> all;
    TimeNs end = monotonic_ns() + limit;
    while (all.size() < count && monotonic_ns() < end) {
      on_core([&] {
        Completion batch[64];
        size_t polled = queue.poll(batch);
        all.insert(all.end(), batch, batch + polled);
      });
      std::this_thread::yield();
    }
    return all;
  }
  void expect_success(size_t count) {
    std::vector<Completion> all = await(count);
    REQUIRE(all.size() == count);
    for (const Completion& one : all) REQUIRE(name(one.status) == name(WcStatus::kSuccess));
  }

  PollLoop loop;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Fabric> fabric;
  CompletionQueue queue{4096};
  std::shared_ptr<LocalMemory> memory;
  uint32_t key = 0;
  Qp* qp = nullptr;

 private:
  std::thread control_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

struct Wire {
  Host near{loopback_address(2)}, far{loopback_address(3)};
  explicit Wire(const QpAttributes& attributes = {}) {
    near.connect(far, attributes);
    far.connect(near, attributes);
  }
};

}  // namespace rocefs::test
