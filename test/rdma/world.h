// A fabric on a scheduler that the test drives, with helpers: packet faults, memory that answers
// late, and a connection that checks every byte.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/rng.h"
#include "core/config/topology.h"
#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"
#include "rdma/traffic/flow.h"

namespace rocefs::test {

struct World {
  Scheduler scheduler;
  Outstanding outstanding;
  Fabric fabric;

  explicit World(uint64_t seed = 1, const Topology& topology = default_topology())
      : fabric(topology, seed, scheduler, outstanding) {
    for (auto& device : fabric.devices()) REQUIRE(device->registers().open(ClockMode::kVirtual));
  }

  Device& device(std::string_view name) { return *fabric.device(name); }
  PortCounters& counters(std::string_view name) { return device(name).port().counters(); }
  Link& link(std::string_view name) { return *fabric.link(name); }

  // Runs until nothing is outstanding; false if that takes longer than `limit`.
  bool run_idle(TimeNs limit = 600 * kSecond) {
    TimeNs end = scheduler.now() + limit;
    while (outstanding.any()) {
      if (!scheduler.run_one(end)) return false;
    }
    return true;
  }
};

inline LinkParameters lossy(LinkParameters parameters, double loss) {
  parameters.loss = loss;
  return parameters;
}
inline void set(Link& link, const LinkParameters& parameters) {
  link.apply(Link::values_of(parameters));
}

// As echo sets them. `timer` is the word's index.
inline void set_ops(QpHost& device, bool enable, uint64_t range = 16, uint64_t timer = 0) {
  device.spraying().apply(std::vector<KnobValue>{uint64_t{enable}, range, timer});
}
inline void set_sr(QpHost& device, bool enable, uint64_t reorder_window = 64) {
  device.selective().apply(std::vector<KnobValue>{uint64_t{enable}, reorder_window});
}

// Stands between a link and its far end: drops, duplicates, delays and damages packets.
class Meddler final : public LinkSink {
 public:
  struct Odds {
    double drop = 0, duplicate = 0, delay = 0, corrupt = 0;
    TimeNs longest_delay = 20 * kMicrosecond;
    double flip = 0;  // flips the SR-capable bit
  };
  Meddler(World& world, Link& link, uint64_t seed, const Odds& odds)
      : world_(world), far_(link.sink()), rng_(seed, "meddler " + link.name()), odds_(odds) {
    link.set_sink(*this);
  }

  // Looks at each packet first; true: dropped.
  std::function<bool(const wire::Parsed&, Packet&)> script;
  // How much later each packet arrives.
  std::function<TimeNs(const wire::Parsed&)> delay;

  void receive(Packet* arriving, TimeNs now) override {
    PacketPtr packet(arriving);
    if (delay) {
      wire::Parsed parsed;
      REQUIRE(wire::parse_headers(packet->header_bytes(), packet->payload.length, parsed) ==
              wire::ParseError::kNone);
      return hold(std::move(packet), delay(parsed));
    }
    if (script) {
      wire::Parsed parsed;
      REQUIRE(wire::parse_headers(packet->header_bytes(), packet->payload.length, parsed) ==
              wire::ParseError::kNone);
      if (script(parsed, *packet)) return;
    }
    if (rng_.chance(odds_.flip))
      packet->header[wire::kIpv4Len + wire::kUdpLen + 4] ^= wire::kSrCapable;
    if (rng_.chance(odds_.drop)) return;
    if (rng_.chance(odds_.corrupt)) corrupt(*packet);
    if (rng_.chance(odds_.duplicate)) hold(copy(*packet));
    if (rng_.chance(odds_.delay)) return hold(std::move(packet));
    far_.receive(packet.release(), now);
  }

  // Unlike copy_of(), leaves a payload by reference as it is.
  PacketPtr copy(const Packet& packet) {
    PacketPtr twin = world_.fabric.pool().acquire();
    twin->header = packet.header;
    twin->header_len = packet.header_len;
    twin->payload = packet.payload;
    twin->sealed = packet.sealed;
    if (packet.frame) {
      Frame* frame = world_.fabric.pool().attach_frame(*twin);
      frame->bytes = packet.frame->bytes;
    }
    return twin;
  }
  void deliver(PacketPtr packet) { far_.receive(packet.release(), world_.scheduler.now()); }

 private:
  struct Held {
    Meddler* owner;
    PacketPtr packet;
    Event event;
    Held(Meddler* o, PacketPtr&& p)
        : owner(o), packet(std::move(p)), event(event_of<&Held::due>(this)) {}
    void due(TimeNs) { owner->deliver(std::move(packet)); }
  };

  void hold(PacketPtr&& packet) {
    hold(std::move(packet),
         static_cast<TimeNs>(rng_.below(static_cast<uint64_t>(odds_.longest_delay))));
  }
  void hold(PacketPtr&& packet, TimeNs later) {
    std::erase_if(held_,
                  [](const auto& held) { return !held->packet && !held->event.scheduled(); });
    held_.push_back(std::make_unique<Held>(this, std::move(packet)));
    world_.scheduler.after(held_.back()->event, later);
  }

  void corrupt(Packet& packet) {
    REQUIRE(materialize(packet));
    size_t length = packet.wire_length() - packet.header_len;
    packet.frame->bytes[rng_.below(length)] ^= static_cast<uint8_t>(1 + rng_.below(255));
  }

  World& world_;
  LinkSink& far_;
  Rng rng_;
  Odds odds_;
  std::vector<std::unique_ptr<Held>> held_;
};

// Memory that answers at scheduled times, as a client's does; in any order.
class SlowMemory : public Memory {
 public:
  SlowMemory(World& world, size_t size, uint64_t seed, TimeNs longest = 5 * kMicrosecond)
      : bytes(size), world_(world), rng_(seed, "slow memory"), longest_(longest) {}

  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override {
    return later(
        [this, offset, source] {
          std::copy(source.begin(), source.end(), bytes.begin() + static_cast<long>(offset));
        },
        listener, ticket);
  }
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override {
    return later(
        [this, offset, into] {
          std::copy_n(bytes.begin() + static_cast<long>(offset), into.size(), into.begin());
        },
        listener, ticket);
  }

  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override {
    return later(
        [this, offset, operation, &original] {
          std::memcpy(&original, bytes.data() + offset, sizeof original);
          uint64_t next = operation.result(original);
          std::memcpy(bytes.data() + offset, &next, sizeof next);
        },
        listener, ticket);
  }

  std::vector<uint8_t> bytes;
  bool failing = false;
  size_t asked = 0;

 private:
  struct Job {
    std::function<void()> work;
    MemoryListener* listener;
    uint64_t ticket;
    bool ok;
    Event event;
    Job(std::function<void()> w, MemoryListener* l, uint64_t t, bool o)
        : work(std::move(w)), listener(l), ticket(t), ok(o), event(event_of<&Job::due>(this)) {}
    void due(TimeNs) {
      if (ok) work();
      std::exchange(listener, nullptr)->memory_done(ticket, ok);
    }
  };

  Outcome later(std::function<void()> work, MemoryListener& listener, uint64_t ticket) {
    ++asked;
    std::erase_if(jobs_, [](const auto& job) { return !job->listener && !job->event.scheduled(); });
    jobs_.push_back(std::make_unique<Job>(std::move(work), &listener, ticket, !failing));
    auto delay = static_cast<TimeNs>(rng_.below(static_cast<uint64_t>(longest_)) + 1);
    world_.scheduler.after(jobs_.back()->event, delay);
    return Outcome::kPending;
  }

  World& world_;
  Rng rng_;
  TimeNs longest_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

// Two connected queue pairs with memory at both ends.
struct Connection {
  static constexpr uint32_t kPd = 9;
  static constexpr uint32_t kQkey = 0x1234;
  static constexpr uint8_t kAllRights =
      kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;

  World& world;
  Device& near_device;
  Device& far_device;
  CompletionQueue near_cq{4096}, far_cq{4096};
  std::shared_ptr<Memory> near_memory, far_memory;
  uint64_t near_address = 0x100000, far_address = 0x900000;
  uint32_t near_key = 0, far_key = 0;
  Qp* near = nullptr;
  Qp* far = nullptr;

  Connection(World& w, uint64_t bytes, QpAttributes attributes = {},
             std::shared_ptr<Memory> near_mem = nullptr, std::shared_ptr<Memory> far_mem = nullptr,
             QpType type = QpType::kRc)
      : world(w),
        near_device(w.device("mb_0")),
        far_device(w.device("mb_1")),
        near_memory(near_mem ? near_mem : LocalMemory::create(bytes)),
        far_memory(far_mem ? far_mem : LocalMemory::create(bytes)) {
    near_key = *near_device.memory().add(near_memory, near_address, bytes, kPd, kLocalWrite);
    far_key = *far_device.memory().add(far_memory, far_address, bytes, kPd, kAllRights);
    near = make(near_device, near_cq, type);
    far = make(far_device, far_cq, type);
    attributes.qkey = kQkey;
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    raise(*near, *far, near_device, far_device, attributes);
    std::swap(attributes.send_psn, attributes.receive_psn);
    raise(*far, *near, far_device, near_device, attributes);
  }
  ~Connection() {
    near_device.destroy_qp(*near);
    far_device.destroy_qp(*far);
  }

  Qp* make(Device& device, CompletionQueue& cq, QpType type) {
    QpInit init;
    init.type = type;
    init.pd = kPd;
    init.send_cq = init.receive_cq = &cq;
    init.send_depth = init.receive_depth = 512;
    return *device.create_qp(init);
  }
  static void raise(Qp& qp, Qp& peer, Device& own, Device& other, QpAttributes attributes) {
    attributes.remote_qpn = peer.number();
    attributes.path.local = gids_of(own.port().spec())[1];
    attributes.path.remote = gids_of(other.port().spec())[1];
    REQUIRE(qp.bring_up(attributes));
  }

  SendRequest write(uint64_t id, uint64_t offset, uint32_t length) const {
    SendRequest request;
    request.wr_id = id;
    request.op = SendOp::kWrite;
    request.sges = Sge{near_address + offset, length, near_key};
    request.remote_address = far_address + offset;
    request.rkey = far_key;
    request.path.local = gids_of(near_device.port().spec())[1];  // for datagrams
    request.path.remote = gids_of(far_device.port().spec())[1];
    request.remote_qpn = far->number();
    request.qkey = kQkey;
    return request;
  }
  SendRequest send(uint64_t id, uint64_t offset, uint32_t length) const {
    SendRequest request = write(id, offset, length);
    request.op = SendOp::kSend;
    return request;
  }
  SendRequest read(uint64_t id, uint64_t offset, uint32_t length) const {
    SendRequest request = write(id, offset, length);
    request.op = SendOp::kRead;
    return request;
  }
  // The original goes to `result` of the near memory.
  SendRequest fetch_add(uint64_t id, uint64_t offset, uint64_t add, uint64_t result) const {
    SendRequest request = write(id, offset, 8);
    request.op = SendOp::kFetchAdd;
    request.swap_add = add;
    request.sges = Sge{near_address + result, 8, near_key};
    return request;
  }
  ReceiveRequest receive(uint64_t id, uint64_t offset, uint32_t length) const {
    ReceiveRequest request;
    request.wr_id = id;
    request.sges = Sge{far_address + offset, length, far_key};
    return request;
  }
  void post(const SendRequest& request) {
    if (Result<void> posted = near->post(request); !posted) FAIL(posted.error().reason);
  }
  void post(const ReceiveRequest& request) {
    if (Result<void> posted = far->post(request); !posted) FAIL(posted.error().reason);
  }

  static std::vector<Completion> poll(CompletionQueue& cq) {
    std::vector<Completion> all(8192);
    all.resize(cq.poll(all));
    return all;
  }
};

inline std::span<uint8_t> bytes_of(Memory& memory) {
  if (uint8_t* direct = memory.direct()) {
    return {direct, static_cast<LocalMemory&>(memory).bytes().size()};
  }
  return static_cast<SlowMemory&>(memory).bytes;
}

inline void fill(std::span<uint8_t> bytes, uint64_t seed) {
  Rng rng(seed, "fill");
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
}

}  // namespace rocefs::test
