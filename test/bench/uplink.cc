// Two engines in two network namespaces joined by veth, compared with two threads there that only
// send and receive datagrams of the same size, with the same sockets and I/O. Neither has more
// than a window's packets in flight: none are lost. Each side has a CPU of its own: placement by
// the scheduler changes either's figure by a factor of two.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "core/base/clock.h"
#include "rdma/uplink/uplink.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/libfabric.h"
#include "test/bench/net.h"
#include "test/bench/two_networks.h"

namespace rocefs::bench {
namespace {

constexpr uint32_t kMessage = 64 << 10;
constexpr uint32_t kLarge = 16 * kMessage;
constexpr uint32_t kPacket = 4096;
constexpr unsigned kWindow = 128;  // packets
// About 0.3 s: two engines that begin on one CPU are given one each within 50 ms.
constexpr int messages(bool gso) {
  return gso ? 16'000 : 4000;
}
constexpr int kTurns = 2000;
constexpr size_t kQpCount = 1000;

std::string address_text(unsigned host) {
  return fmt::format("10.9.0.{}", host);
}
UdpAddress address(unsigned host) {
  return {mapped_ipv4({10, 9, 0, static_cast<uint8_t>(host)}), wire::kRocePort};
}

// Pins the calling thread, and those that it starts.
void pin_to(unsigned host) {
  pin(static_cast<int>(host % 2));
}

// A machine with queue pairs and their memory.
class Machine {
 public:
  // In the network of the calling thread.
  Machine(unsigned host, bool gso, IoKind kind) {
    Engine::Options options;
    options.io = kind;
    auto created = Engine::create(options, loop_);
    require(bool(created), "io_uring is forbidden here");
    engine_ = std::move(*created);
    Topology topology = *uplink_topology(address_text(host));
    for (LinkSpec& link : topology.links) {
      link.rate_bps = 400'000'000'000;
      link.delay_ns = 0;
    }
    fabric_ = std::make_unique<Fabric>(topology, 1, engine_->scheduler(), engine_->outstanding());
    for (auto& device : fabric_->devices()) {
      require(bool(device->registers().open(ClockMode::kReal)), "no register page");
    }
    Uplink& uplink = *fabric_->uplink("uplink");
    uplink.apply(std::vector<KnobValue>{uint64_t{gso}});
    Result<void> opened = uplink.open(*engine_, loop_, [](const std::string&) {});
    require(bool(opened), "the uplink cannot be opened");
    memory_ = LocalMemory::create(kLarge);
    key_ = *device().memory().add(memory_, kAddress, kLarge, kPd, kLocalWrite | kRemoteWrite);
    QpInit init;
    init.pd = kPd;
    init.send_cq = init.receive_cq = &queue_;
    while (qps_.size() < kQpCount) qps_.push_back(*device().create_qp(init));
    queue_.set_listener([this] { engine_->scheduler().at(more_, engine_->scheduler().now()); });
    pin_to(host);
    engine_->start();
    unpin();
  }
  ~Machine() {
    engine_->stop();
    for (Qp* qp : qps_) device().destroy_qp(*qp);
  }

  void connect(Machine& peer) {
    QpAttributes attributes;
    attributes.path_mtu = kPacket;
    attributes.window = kWindow;
    attributes.access = kRemoteWrite;
    attributes.path.local = gids_of(device().port().spec())[1];
    attributes.path.remote = gids_of(peer.device().port().spec())[1];
    remote_key_ = peer.key_;
    on_core([&] {
      for (size_t i = 0; i < qps_.size(); ++i) {
        attributes.remote_qpn = peer.qps_[i]->number();
        require(bool(qps_[i]->bring_up(attributes)), "no connection");
      }
    });
  }
  // Posts `count` WRITEs, at most `depth` at a time, each by one of `qps` queue pairs at random;
  // returns nanoseconds per WRITE.
  double write(uint32_t length, int count, int depth, size_t qps = 1) {
    TimeNs begin = monotonic_ns();
    on_core([&] {
      length_ = length;
      used_ = qps;
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
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    Qp& qp = *qps_[(random_ >> 33) % used_];
    require(bool(qp.post(request)), "the send queue is full");
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
  std::vector<Qp*> qps_;
  size_t used_ = 1;
  uint64_t random_ = 1;
  uint32_t length_ = 0;
  int to_post_ = 0, to_complete_ = 0;
  std::promise<void> finished_;
};

// A thread's I/O and sockets, with room for a window of messages.
class Bare final : DatagramListener {
 public:
  // In the network of the calling thread.
  Bare(unsigned host, bool gso) : gso_(gso) {
    auto chosen = choose_io(IoKind::kIoUring, 256);
    require(bool(chosen), "io_uring is forbidden here");
    io_ = std::move(chosen->io);
    auto in = open_udp(address(host), UdpUse::kReceive);
    auto out = open_udp({address(host).ip, 0xc000}, UdpUse::kSend);
    require(in && out, "no socket");
    in_ = std::move(*in);
    out_ = std::move(*out);
    int on = 1, off = 0;
    if (!gso) return;
    take_batches(in_.get(), true);
    (void)::setsockopt(out_.get(), SOL_SOCKET, SO_NO_CHECK, &off, sizeof on);
  }
  void begin() {
    io_->enable();
    io_->receive_messages(in_.get(), gso_ ? 16 : 64, gso_ ? 65'535 : kMaxDatagram, *this);
  }
  // The address is free for others.
  void end() {
    io_->stop_receiving(in_.get());
    io_->poll();
  }
  // Sends one datagram, or several for the kernel to segment.
  void send(unsigned host, size_t length, size_t count = 1) {
    require(!free_.empty(), "too many are under way");
    Sending& sending = *free_.back();
    free_.pop_back();
    sending.message.msg_namelen = to_sockaddr(address(host), sending.to);
    sending.part.iov_len = length * count;
    sending.set_segment(count > 1 ? length : 0);
    io_->send_message(out_.get(), sending.message, sending);
  }
  void poll() { io_->poll(); }
  void wait() {
    io_->wait(kNever);
    io_->poll();
  }
  std::atomic<uint64_t> received_octets{0};

 private:
  struct Sending final : IoListener {
    Bare* owner = nullptr;
    sockaddr_storage to{};
    std::vector<uint8_t> bytes;
    iovec part{};
    msghdr message{};
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> control{};

    void set_segment(size_t octets) {
      message.msg_control = octets > 0 ? control.data() : nullptr;
      message.msg_controllen = octets > 0 ? control.size() : 0;
      if (octets == 0) return;
      auto* item = reinterpret_cast<cmsghdr*>(control.data());
      *item = {CMSG_LEN(sizeof(uint16_t)), IPPROTO_UDP, UDP_SEGMENT};
      auto size = static_cast<uint16_t>(octets);
      std::memcpy(CMSG_DATA(item), &size, sizeof size);
    }
    void completed(int result, uint32_t) override {
      require(result > 0, "a bare datagram cannot be sent");
      owner->free_.push_back(this);
    }
  };
  void received(const Datagram& datagram) override {
    // Copies, as the uplink does, to free the buffer at once.
    std::memcpy(copy_.data(), datagram.payload.data(), datagram.payload.size());
    received_octets.fetch_add(datagram.payload.size(), std::memory_order_release);
  }
  void receiving_ended(int) override {}

  const bool gso_;
  std::unique_ptr<CoreIo> io_;
  Fd in_, out_;
  std::vector<uint8_t> copy_ = std::vector<uint8_t>(65'535);
  std::vector<Sending> sendings_ = std::vector<Sending>(2 * kWindow);
  std::vector<Sending*> free_ = [this] {
    std::vector<Sending*> all;
    for (Sending& one : sendings_) {
      one.owner = this;
      one.bytes.resize(gso_ ? 65'535 : kMaxDatagram);
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
double bare_stream(const TwoNetworks& networks, bool gso) {
  const uint64_t packets = uint64_t{kMessage / kPacket} * static_cast<uint64_t>(messages(gso));
  constexpr size_t kOctets = wire::kBthLen + kPacket + wire::kIcrcLen;
  const uint64_t at_once = gso ? UdpBatch::kMaxOctets / kOctets : 1;
  networks.enter(2);
  Bare far(12, gso);
  networks.enter(1);
  Bare near(11, gso);
  std::thread receiver([&] {
    pin_to(2);
    far.begin();
    while (far.received_octets.load() < packets * kOctets) far.wait();
    far.end();
  });
  pin_to(1);
  near.begin();
  TimeNs begin = monotonic_ns();
  for (uint64_t sent = 0; sent < packets;) {
    uint64_t open = sent - far.received_octets.load(std::memory_order_acquire) / kOctets;
    for (unsigned i = 0; i < 32 && open + at_once <= kWindow && sent < packets; i += at_once) {
      uint64_t count = std::min(at_once, packets - sent);
      near.send(12, kOctets, count);
      open += count, sent += count;
    }
    near.poll();
    if (open + at_once > kWindow) std::this_thread::yield();  // the receiver may want the CPU
  }
  receiver.join();
  auto taken = static_cast<double>(monotonic_ns() - begin);
  near.end();
  unpin();
  return taken / messages(gso);
}

// Nanoseconds for each round of a small datagram and its answer.
double bare_turns(const TwoNetworks& networks) {
  constexpr size_t kWrite = 40, kAcknowledge = 20;
  networks.enter(2);
  Bare far(12, false);
  networks.enter(1);
  Bare near(11, false);
  std::thread answerer([&] {
    pin_to(2);
    far.begin();
    for (uint64_t answered = 0; answered < kTurns; ++answered) {
      while (far.received_octets.load() == answered * kWrite) far.wait();
      far.send(11, kAcknowledge);
      far.poll();
    }
    far.end();
  });
  pin_to(1);
  near.begin();
  TimeNs begin = monotonic_ns();
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    near.send(12, kWrite);
    while (near.received_octets.load() < turn * kAcknowledge) near.wait();
  }
  auto taken = static_cast<double>(monotonic_ns() - begin);
  answerer.join();
  near.end();
  unpin();
  return taken / kTurns;
}

// Two machines, each in its network.
struct Machines {
  std::unique_ptr<Machine> near, far;

  Machines(const TwoNetworks& networks, bool gso, IoKind kind = IoKind::kIoUring) {
    const unsigned first = kind == IoKind::kPoll ? 3 : 1;
    networks.enter(2);
    far = std::make_unique<Machine>(first + 1, gso, kind);
    networks.enter(1);
    near = std::make_unique<Machine>(first, gso, kind);
    near->connect(*far);
    far->connect(*near);
    (void)near->write(kMessage, 3 * kQpCount, 16, kQpCount);  // warm, sockets open
  }
};

// The WRITE of 64 KiB, by one queue pair and by many, beside bare datagrams and libfabric; and of 1
// MiB. The first packet of a WRITE is longer than the others: the kernel gets it and one more in a
// message of their own, which costs little where many follow.
void stream(const TwoNetworks& networks, bool gso, Table& table) {
  Machines machines(networks, gso), polling(networks, gso, IoKind::kPoll);
  Machine& near = *machines.near;
  Rounds ns = interleave(5, {[&] { return near.write(kMessage, messages(gso), 16); },
                             [&] { return bare_stream(networks, gso); },
                             [&] { return near.write(kMessage, messages(gso), 16, kQpCount); },
                             [&] { return libfabric_write_ns(networks, kMessage, 500); },
                             [&] { return polling.near->write(kMessage, messages(gso), 16); },
                             [&] {
                               constexpr int kTimes = kLarge / kMessage;
                               return near.write(kLarge, messages(gso) / kTimes, 16) / kTimes;
                             }});
  auto mbps = [&](size_t who) { return fmt::format("{:.0f} MB/s", kMessage / ns[who] * 1e3); };
  auto row = [&](std::string figure, size_t own, size_t other, const char* what, double goal) {
    double ratio = ns.ratio(other, own);
    Row of{figure + (gso ? ", gso" : ""), mbps(own), mbps(other) + " " + what,
           fmt::format("{:.2f}", ratio), ""};
    return judged(of, ratio, Bound::kAtLeast, goal, "");
  };
  table.push_back(row("uplink: WRITE of 64 KiB over veth", 0, 1, "bare UDP", gso ? 0.70 : 0.80));
  table.push_back(row("  of 1 MiB", 5, 1, "bare UDP", gso ? 0.70 : 0.80));
  if (ns[3] > 0) {
    table.push_back(row("  beside udp;ofi_rxd", 0, 3, "libfabric", gso ? 6 : 2.5));
  } else {
    table.push_back({"  beside udp;ofi_rxd", "", "libfabric: not installed", "", ""});
  }
  table.push_back(row("  1,000 queue pairs at random", 2, 0, "one", 0.95));
  table.push_back(row("  with the poll loop", 4, 0, "io_uring", 0.8));
}

void turns(const TwoNetworks& networks, Table& table) {
  Machines machines(networks, false), polling(networks, false, IoKind::kPoll);
  Rounds ns = interleave(
      7, {[&] { return machines.near->write(8, kTurns, 1); }, [&] { return bare_turns(networks); },
          [&] { return polling.near->write(8, kTurns, 1); }});
  double ratio = ns.ratio(0, 1);
  table.push_back(
      judged({"uplink: WRITE of 8 B and its ACK over veth", fmt::format("{:.1f} us", ns[0] / 1e3),
              fmt::format("{:.1f} us bare UDP", ns[1] / 1e3), fmt::format("{:.2f}", ratio), ""},
             ratio, Bound::kAtMost, 1.6, ""));
  double polled = ns.ratio(2, 0);
  table.push_back(
      judged({"  with the poll loop", fmt::format("{:.1f} us", ns[2] / 1e3),
              fmt::format("{:.1f} us io_uring", ns[0] / 1e3), fmt::format("{:.2f}", polled), ""},
             polled, Bound::kAtMost, 1.3, ""));
}

// Both machines have a socket for each source port.
void raise_file_limit() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void bench_uplink(Table& table) {
  unpin();
  raise_file_limit();
  std::unique_ptr<TwoNetworks> networks = TwoNetworks::make();
  if (!networks) {
    fmt::print(stderr, "uplink: skipped: it takes root, or unshare -Urn, to join two networks\n");
    return;
  }
  stream(*networks, false, table);
  stream(*networks, true, table);
  turns(*networks, table);
}

}  // namespace rocefs::bench
