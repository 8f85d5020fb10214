// Two engines that reach each other through the kernel's loopback interface, against two threads
// that do nothing but send and receive datagrams of the same size, with the same sockets and rings.
// Neither has more than a window's packets under way: nobody loses any.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "core/clock.h"
#include "rdma/uplink.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

constexpr uint32_t kMessage = 64 << 10;
constexpr uint32_t kPacket = 4096;
constexpr unsigned kWindow = 128;  // packets
constexpr int kMessages = 3000;    // 188 MiB
constexpr int kTurns = 3000;

std::string loopback(unsigned host) {
  auto pid = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.{}", 64 + (pid >> 8) % 128, pid % 256, host);
}
UdpAddress address(unsigned host) {
  auto pid = static_cast<unsigned>(::getpid());
  return {mapped_ipv4({127, static_cast<uint8_t>(64 + (pid >> 8) % 128),
                       static_cast<uint8_t>(pid % 256), static_cast<uint8_t>(host)}),
          wire::kRocePort};
}

// A machine with a queue pair and its memory.
class Machine {
 public:
  explicit Machine(unsigned host) {
    auto created = Engine::create({}, loop_);
    require(bool(created), "io_uring is forbidden here");
    engine_ = std::move(*created);
    Topology topology = *uplink_topology(loopback(host));
    for (LinkSpec& link : topology.links) {
      link.rate_bps = 400'000'000'000;
      link.delay_ns = 0;
    }
    fabric_ = std::make_unique<Fabric>(topology, 1, engine_->scheduler(), engine_->outstanding());
    for (auto& device : fabric_->devices()) {
      require(bool(device->registers().open(ClockMode::kReal)), "no register page");
    }
    Result<void> opened =
        fabric_->uplink("uplink")->open(*engine_, loop_, [](const std::string&) {});
    require(bool(opened), "the uplink cannot be opened");
    memory_ = LocalMemory::create(kMessage);
    key_ = *device().memory().add(memory_, kAddress, kMessage, kPd, kLocalWrite | kRemoteWrite);
    QpInit init;
    init.pd = kPd;
    init.send_cq = init.receive_cq = &queue_;
    qp_ = *device().create_qp(init);
    queue_.set_listener([this] { engine_->scheduler().at(more_, engine_->scheduler().now()); });
    engine_->start();
  }
  ~Machine() {
    engine_->stop();
    device().destroy_qp(*qp_);
  }

  void connect(Machine& peer) {
    QpAttributes attributes;
    attributes.path_mtu = kPacket;
    attributes.window = kWindow;
    attributes.access = kRemoteWrite;
    attributes.remote_qpn = peer.qp_->number();
    attributes.path.local = gids_of(device().port().spec())[1];
    attributes.path.remote = gids_of(peer.device().port().spec())[1];
    remote_key_ = peer.key_;
    on_core([&] { require(bool(qp_->bring_up(attributes)), "no connection"); });
  }
  // That many WRITEs, at most `depth` at a time; nanoseconds for each.
  double write(uint32_t length, int count, int depth) {
    TimeNs begin = monotonic_ns();
    on_core([&] {
      length_ = length;
      to_post_ = to_complete_ = count;
      finished_ = std::promise<void>();
      while (depth-- > 0 && to_post_ > 0) post();
    });
    finished_.get_future().wait();
    return static_cast<double>(monotonic_ns() - begin) / count;
  }

 private:
  static constexpr uint32_t kPd = 3;
  static constexpr uint64_t kAddress = 1 << 20;

  Device& device() { return *fabric_->device("mb_0"); }
  void on_core(std::function<void()> work) {
    std::promise<void> done;
    Task task = [&] {
      work();
      done.set_value();
    };
    require(engine_->post(task), "the engine is busy");
    done.get_future().wait();
  }
  void post() {
    SendRequest request;
    request.op = SendOp::kWrite;
    request.sges = Sge{kAddress, length_, key_};
    request.remote_address = kAddress;
    request.rkey = remote_key_;
    require(bool(qp_->post(request)), "the send queue is full");
    --to_post_;
  }
  void on_more(TimeNs) {
    std::array<Completion, 64> batch;
    while (size_t taken = queue_.poll(batch)) {
      for (size_t i = 0; i < taken; ++i) {
        require(batch[i].status == WcStatus::kSuccess, "a work request failed");
        if (to_post_ > 0) post();
        if (--to_complete_ == 0) finished_.set_value();
      }
    }
  }

  PollLoop loop_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Fabric> fabric_;
  Event more_ = event_of<&Machine::on_more>(this);
  CompletionQueue queue_{512};
  std::shared_ptr<LocalMemory> memory_;
  uint32_t key_ = 0, remote_key_ = 0;
  Qp* qp_ = nullptr;
  uint32_t length_ = 0;
  int to_post_ = 0, to_complete_ = 0;
  std::promise<void> finished_;
};

// A thread's ring and socket, with room for a window of messages.
class Bare final : DatagramListener {
 public:
  explicit Bare(unsigned host) {
    auto ring = IoRing::create(256);
    require(bool(ring), "io_uring is forbidden here");
    ring_ = std::move(*ring);
    auto in = open_udp(address(host), UdpUse::kReceive);
    auto out = open_udp({address(host).ip, 0xc000}, UdpUse::kSend);
    require(in && out, "no socket");
    in_ = std::move(*in);
    out_ = std::move(*out);
  }
  void begin() {
    ring_->enable();
    ring_->receive_messages(in_.get(), 64, kLargestDatagram, *this);
  }
  void send(unsigned host, size_t length) {
    require(!free_.empty(), "too many are under way");
    Sending& sending = *free_.back();
    free_.pop_back();
    sending.message.msg_namelen = to_sockaddr(address(host), sending.to);
    sending.part.iov_len = length;
    ring_->send_message(out_.get(), sending.message, sending);
  }
  void poll() { ring_->poll(); }
  void wait() {
    ring_->wait(kNever);
    ring_->poll();
  }
  std::atomic<uint64_t> received_count{0};

 private:
  struct Sending final : IoListener {
    Bare* owner = nullptr;
    sockaddr_storage to{};
    std::array<uint8_t, kLargestDatagram> bytes{};
    iovec part{bytes.data(), 0};
    msghdr message{};
    void completed(int, uint32_t) override { owner->free_.push_back(this); }
  };
  void received(const Datagram& datagram) override {
    // As the uplink, whose packets leave the ring's buffers at once.
    std::memcpy(copy_.data(), datagram.payload.data(), datagram.payload.size());
    received_count.fetch_add(1, std::memory_order_release);
  }
  void receiving_ended(int) override {}

  std::unique_ptr<IoRing> ring_;
  Fd in_, out_;
  std::array<uint8_t, kLargestDatagram> copy_{};
  std::vector<Sending> sendings_ = std::vector<Sending>(2 * kWindow);
  std::vector<Sending*> free_ = [this] {
    std::vector<Sending*> all;
    for (Sending& one : sendings_) {
      one.owner = this;
      one.part.iov_base = one.bytes.data();
      one.message.msg_name = &one.to;
      one.message.msg_iov = &one.part;
      one.message.msg_iovlen = 1;
      all.push_back(&one);
    }
    return all;
  }();
};

// Nanoseconds for each message of 64 KiB.
double bare_stream() {
  constexpr uint64_t kPackets = uint64_t{kMessages} * (kMessage / kPacket);
  Bare near(31), far(32);
  std::thread receiver([&] {
    far.begin();
    while (far.received_count.load() < kPackets) far.wait();
  });
  near.begin();
  TimeNs begin = monotonic_ns();
  for (uint64_t sent = 0; sent < kPackets;) {
    uint64_t open = sent - far.received_count.load(std::memory_order_acquire);
    for (unsigned i = 0; i < 32 && open < kWindow && sent < kPackets; ++i, ++open, ++sent) {
      near.send(32, wire::kBthLen + kPacket + wire::kIcrcLen);
    }
    near.poll();
    if (open >= kWindow) std::this_thread::yield();  // the receiver's turn, where CPUs are scarce
  }
  receiver.join();
  return static_cast<double>(monotonic_ns() - begin) / kMessages;
}

// Nanoseconds for each round of a small datagram and its answer.
double bare_turns() {
  Bare near(31), far(32);
  std::thread answerer([&] {
    far.begin();
    for (uint64_t answered = 0; answered < kTurns; ++answered) {
      while (far.received_count.load() == answered) far.wait();
      far.send(31, 20);
      far.poll();
    }
  });
  near.begin();
  TimeNs begin = monotonic_ns();
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    near.send(32, 40);
    while (near.received_count.load() < turn) near.wait();
  }
  answerer.join();
  return static_cast<double>(monotonic_ns() - begin) / kTurns;
}

}  // namespace

void bench_uplink(Table& table) {
  unpin();
  Machine near(33), far(34);
  near.connect(far);
  far.connect(near);
  std::vector<double> ns =
      interleave(7, {[&] { return near.write(kMessage, kMessages, 16); }, bare_stream,
                     [&] { return near.write(8, kTurns, 1); }, bare_turns});
  auto mbps = [](double per_message) { return kMessage / per_message * 1e3; };
  table.push_back(judged(
      {"uplink: WRITE of 64 KiB over loopback", fmt::format("{:.0f} MB/s", mbps(ns[0])),
       fmt::format("{:.0f} MB/s bare UDP", mbps(ns[1])), fmt::format("{:.2f}", ns[1] / ns[0]), ""},
      ns[1] / ns[0], Bound::kAtLeast, 0.80, ""));
  table.push_back(judged(
      {"uplink: WRITE of 8 B and its ACK over loopback", fmt::format("{:.1f} us", ns[2] / 1e3),
       fmt::format("{:.1f} us bare UDP", ns[3] / 1e3), fmt::format("{:.2f}", ns[2] / ns[3]), ""},
      ns[2] / ns[3], Bound::kAtMost, 1.6, ""));
}

}  // namespace rocefs::bench
