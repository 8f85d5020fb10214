// Octets from outside for two connected devices: raw, or wrapped so that the queue pairs process
// them. Their cable loses everything: all packets come from the input.
//
// An input is a series of records: a byte of Flags, a length of two bytes, and as many bytes.
#include "rdma/wire/packet.h"

#include <algorithm>
#include <array>

#include "core/config/topology.h"
#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/wrapped.h"

using namespace rocefs;

namespace {

enum Flags : uint8_t {
  kWrapped = 1 << 0,      // the bytes begin with the BTH: IP, UDP and ICRC are made
  kToRequester = 1 << 1,  // for the device whose requests wait for answers
  kKnownQp = 1 << 2,      // the BTH names one of the queue pairs, by its last bits
  kKnownKey = 1 << 3,     // an RETH or AtomicETH behind it names the region
  kTimePasses = 1 << 4,   // a millisecond, afterwards
  kIpv6 = 1 << 5,
};

constexpr uint32_t kPd = 5;
constexpr uint64_t kAddress = 0x10000, kBytes = 16 << 10;
constexpr QpType kTypes[] = {QpType::kRc, QpType::kUc, QpType::kUd};

Topology cable() {
  Topology topology;
  for (uint8_t i : {1, 2}) {
    PortSpec port;
    port.mac = {2, 0, 0, 0, 0, i};
    port.ipv4 = {10, 0, 0, i};
    topology.devices.push_back({"d" + std::to_string(i), "", {port}});
  }
  LinkSpec link;
  link.a = "d1";
  link.b = "d2";
  link.loss = 1;
  topology.links.push_back(link);
  return topology;
}

class World {
 public:
  World() : fabric_(cable(), 1, scheduler_, outstanding_) {
    for (End* end : {&near_, &far_}) {
      end->memory = LocalMemory::create(kBytes);
      end->key = *end->device.memory().add(
          end->memory, kAddress, kBytes, kPd,
          kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind);
      for (QpType type : kTypes) end->qps.push_back(&make(*end, type));
    }
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      connect(near_, far_, i);
      connect(far_, near_, i);
    }
    for (SendOp op : {SendOp::kWrite, SendOp::kRead, SendOp::kFetchAdd, SendOp::kSend}) request(op);
  }
  ~World() {
    for (End* end : {&near_, &far_}) {
      for (Qp* qp : end->qps) end->device.destroy_qp(*qp);
    }
  }

  void take(uint8_t flags, std::span<const uint8_t> bytes) {
    bool to_near = flags & kToRequester;
    End& end = to_near ? near_ : far_;
    if (flags & kWrapped) {
      deliver_wrapped(flags, end, to_near ? far_ : near_, bytes);
    } else {
      wire::Parsed parsed;
      (void)wire::parse(bytes, parsed);
      end.device.port().receive_bytes(bytes, scheduler_.now());
    }
    scheduler_.run_until(scheduler_.now() + (flags & kTimePasses ? kMillisecond : kMicrosecond));
    drain();
  }

 private:
  struct End {
    Device& device;
    CompletionQueue queue{256};
    std::shared_ptr<LocalMemory> memory;
    uint32_t key = 0;
    std::vector<Qp*> qps;
    explicit End(Device& d) : device(d) {}
  };

  Qp& make(End& end, QpType type) {
    QpInit init;
    init.type = type;
    init.pd = kPd;
    init.send_cq = init.receive_cq = &end.queue;
    return **end.device.create_qp(init);
  }
  void connect(End& end, End& peer, size_t i) {
    QpAttributes attributes;
    attributes.path_mtu = 256;
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    attributes.remote_qpn = peer.qps[i]->number();
    attributes.path.local = gids_of(end.device.port().spec())[1];
    attributes.path.remote = gids_of(peer.device.port().spec())[1];
    fuzz::require(bool(end.qps[i]->bring_up(attributes)));
    for (int posted = 0; posted < 4; ++posted) {
      ReceiveRequest receive;
      receive.sges = Sge{kAddress, 600, end.key};
      (void)end.qps[i]->post(receive);
    }
  }
  void request(SendOp op) {
    SendRequest request;
    request.op = op;
    request.sges = Sge{kAddress, op == SendOp::kFetchAdd ? 8u : 700u, near_.key};
    request.remote_address = kAddress;
    request.rkey = far_.key;
    fuzz::require(bool(near_.qps[0]->post(request)));
  }
  void drain() {
    std::array<Completion, 64> batch;
    for (End* end : {&near_, &far_}) {
      while (end->queue.poll(batch) > 0) {
      }
    }
  }

  void deliver_wrapped(uint8_t flags, End& end, End& from, std::span<const uint8_t> bytes) {
    constexpr size_t kBth = wire::kBthLen;
    if (bytes.size() < kBth) return;
    std::vector<uint8_t> packet(bytes.begin(), bytes.end());
    if (flags & kKnownQp) {
      uint32_t qpn = end.qps[packet[7] % end.qps.size()]->number();
      for (size_t i = 0; i < 3; ++i) packet[5 + i] = static_cast<uint8_t>(qpn >> (16 - 8 * i));
    }
    if (flags & kKnownKey && bytes.size() >= kBth + 12) {
      uint64_t address = kAddress + packet[kBth + 7];
      uint8_t* eth = packet.data() + kBth;
      for (size_t i = 0; i < 8; ++i) eth[i] = static_cast<uint8_t>(address >> (56 - 8 * i));
      for (size_t i = 0; i < 4; ++i) eth[8 + i] = static_cast<uint8_t>(end.key >> (24 - 8 * i));
    }
    bool v6 = flags & kIpv6;
    const Ip source = gids_of(from.device.port().spec())[v6 ? 0 : 1];
    const Ip destination = gids_of(end.device.port().spec())[v6 ? 0 : 1];
    end.device.port().receive_bytes(fuzz::wrapped(packet, source, destination), scheduler_.now());
  }

  Scheduler scheduler_;
  Outstanding outstanding_;
  Fabric fabric_;
  End near_{*fabric_.device("d1")}, far_{*fabric_.device("d2")};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::span<const uint8_t> input(data, size);
  for (int record = 0; record < 32 && input.size() >= 3; ++record) {
    size_t length = std::min<size_t>(input[1] << 8 | input[2], input.size() - 3);
    world.take(input[0], input.subspan(3, length));
    input = input.subspan(3 + length);
  }
  return 0;
}
