// A client's bytes for the core: requests, counters, work requests, and writes to shared memory.
// Two such clients are connected; two honest queue pairs of the daemon must be able to move their
// data afterwards.
//
// An input is a series of records: a byte of Kind with the client in its highest bit, a length
// byte, and as many bytes.
#include "rdma/client/client.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/config/topology.h"
#include "core/loop/poll_loop.h"
#include "rdma/client/server.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

enum Kind : uint8_t {
  kRequest,  // the operation, then what replaces the first bytes of its argument
  kBytes,    // a memory, an offset of two bytes, bytes to write there
  kRing,     // doorbells of queues
  kPost,     // a send request: pairs of an offset and what is added to the byte there
  kReceive,  // likewise
  kConsume,  // consumes completions
  kTime,     // passes milliseconds
  kKinds,
};

constexpr size_t kArena = 32 << 10;  // per client
constexpr uint32_t kMaxEntries = 64;
constexpr uint32_t kOwnPd = 5;
constexpr uint64_t kOwnAddress = 0x10000, kOwnBytes = 4096;

alignas(4096) std::array<std::array<uint8_t, kArena>, 2> arenas;

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
  topology.links.push_back(link);
  return topology;
}

// Exists for requests of processes; never runs.
Engine& engine() {
  static PollLoop loop;
  static std::unique_ptr<Engine> one = [] {
    auto made = Engine::create({}, loop);
    fuzz::require(bool(made));
    return std::move(*made);
  }();
  return *one;
}

std::shared_ptr<SharedMemory> share(size_t size) {
  auto memory = SharedMemory::create("fuzz", size, SharedMemory::Others::kWrite);
  fuzz::require(bool(memory));
  return std::make_shared<SharedMemory>(std::move(*memory));
}

class LyingClient {
 public:
  LyingClient(Device& device, Client::Shared& shared, size_t which)
      : arena_(arenas[which]),
        process_(Process::create_threadless(
            {::getpid(), ::getuid(), ::getgid()},
            Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), engine())),
        context_(share(sizeof(rocefs_context_page))),
        client_(std::make_unique<Client>(device, shared, process_, context_, "fuzz", 1)) {
    arena_.fill(static_cast<uint8_t>(which + 1));
    memories_.push_back(context_);
    rocefs_request request{};
    request.op = ROCEFS_OP_ALLOC_PD;
    fuzz::require(ask(request).u.handle == 1);
    request.op = ROCEFS_OP_REG_MR;
    request.u.reg_mr = {1, 15, 0, kArena, 0};
    key_ = ask(request).u.mr.lkey;
    fuzz::require(key_ != 0);
    request = {};
    request.op = ROCEFS_OP_CREATE_CQ;
    request.u.create_cq.entries = kMaxEntries;
    fuzz::require(ask(request).error == 0);
    cq_ = memories_.back();
    request = {};
    request.op = ROCEFS_OP_CREATE_QP;
    request.u.create_qp = {7, 1, 2, 1, 1, 0, 16, 16, 4, 4, 64, 0, 0};
    made_ = ask(request).u.created;
    qp_ = memories_.back();
    fuzz::require(made_.handle == 1);
  }

  // The answer, or error -1 if it has not come.
  rocefs_answer ask(rocefs_request request) {
    confine(request);
    rocefs_answer said{};
    said.error = -1;
    Result<rocefs_created> layout = plan(request);
    if (!layout) return refusal(layout.error());
    Client::Attachment attachment;
    attachment.layout = *layout;
    if (layout->size > 0) memories_.push_back(attachment.memory = share(layout->size));
    client_->request(request, std::move(attachment),
                     [&](const rocefs_answer& answer) { said = answer; });
    settle();
    bool resized = said.error == 0 && request.op == ROCEFS_OP_RESIZE_CQ;
    if (resized && said.u.created.handle == 1) cq_ = memories_.back();
    if (said.error == 0 && request.op == ROCEFS_OP_CREATE_QP) qpns_.push_back(said.u.created.qpn);
    return said;
  }

  void connect(const LyingClient& peer, uint8_t far_host) {
    rocefs_request request{};
    request.op = ROCEFS_OP_MODIFY_QP;
    rocefs_qp_attr& attr = request.u.qp;
    attr.handle = 1;
    attr.access = 15;
    attr.port = attr.path.port = attr.path.is_global = attr.path.sgid_index = 1;
    Ip gid = mapped_ipv4({10, 0, 0, far_host});
    std::copy(gid.begin(), gid.end(), attr.path.dgid);
    attr.path_mtu = 3;
    attr.remote_qpn = peer.made_.qpn;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
    attr.timeout = 8;
    attr.retry_count = attr.rnr_retry = 2;
    constexpr uint32_t kMasks[] = {0, 1 | 1 << 3 | 1 << 4 | 1 << 5,
                                   1 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15,
                                   1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16 | 1 << 13};
    for (attr.state = 1; attr.state <= 3; ++attr.state) {
      attr.mask = kMasks[attr.state];
      fuzz::require(ask(request).error == 0);
    }
  }
  // Sets the queue pairs that requests may address.
  void set_peers(std::vector<uint32_t> qpns) { peers_ = std::move(qpns); }
  const std::vector<uint32_t>& qpns() const { return qpns_; }
  uint32_t key() const { return key_; }

  void take(Kind kind, std::span<const uint8_t> bytes, uint32_t far_key) {
    switch (kind) {
      case kRequest:
        return take_request(bytes);
      case kBytes:
        return take_bytes(bytes);
      case kRing:
        for (uint8_t bell : bytes) ring(bell);
        return;
      case kPost:
        return take_post(bytes, far_key);
      case kReceive:
        return take_receive(bytes);
      case kConsume: {
        auto* page = cq_->at<rocefs_cq_page>(0);
        store_release(page->consumed, load_acquire(page->produced));
        return;
      }
      case kTime:
      case kKinds:
        return;
    }
  }

  // Lets memory answer.
  void settle() {
    for (int i = 0; i < 3; ++i) {
      client_->flush(false);
      process_->work_now();
      client_->poll();
    }
    client_->flush(false);
  }
  void leave() {
    client_.reset();
    process_->work_now();
    process_->take_done();
  }

 private:
  // Confines registered memory to the arena or invalid addresses, and a connection's far end to the
  // fuzzed clients.
  void confine(rocefs_request& request) {
    if (request.op == ROCEFS_OP_REG_MR || request.op == ROCEFS_OP_REREG_MR) {
      bool anew = request.op == ROCEFS_OP_REG_MR;
      rocefs_reg_mr& mr = anew ? request.u.reg_mr : request.u.rereg_mr.mr;
      mr.length = std::min<uint64_t>(mr.length, kArena);
      mr.address %= kArena - mr.length + 1;
      if (mr.iova < kArena) mr.iova += reinterpret_cast<uint64_t>(arena_.data());
      mr.address += reinterpret_cast<uint64_t>(arena_.data());
    }
    if (request.op == ROCEFS_OP_MODIFY_QP && !peers_.empty()) {
      uint32_t& far = request.u.qp.remote_qpn;
      far = far % 8 == 7 ? 0x800000 | far : peers_[far % peers_.size()];
    }
    auto clip = [](uint32_t& entries) {
      if (entries <= 1u << 20) entries %= kMaxEntries + 1;
    };
    if (request.op == ROCEFS_OP_CREATE_CQ) clip(request.u.create_cq.entries);
    if (request.op == ROCEFS_OP_RESIZE_CQ) clip(request.u.resize_cq.entries);
    if (request.op == ROCEFS_OP_CREATE_SRQ) clip(request.u.create_srq.max_wr);
    if (request.op == ROCEFS_OP_CREATE_QP) {
      clip(request.u.create_qp.max_send_wr);
      clip(request.u.create_qp.max_receive_wr);
    }
  }
  void take_request(std::span<const uint8_t> bytes) {
    if (bytes.empty()) return;
    rocefs_request request{};
    request.op = bytes[0];
    if (request.op == ROCEFS_OP_HELLO) return;  // never comes here
    bytes = bytes.subspan(1);
    std::memcpy(&request.u, bytes.data(), std::min(bytes.size(), sizeof request.u));
    (void)ask(request);
  }
  void take_bytes(std::span<const uint8_t> bytes) {
    if (bytes.size() < 3) return;
    SharedMemory& memory = *memories_[bytes[0] % memories_.size()];
    size_t offset = (bytes[1] << 8 | bytes[2]) % memory.size();
    bytes = bytes.subspan(3);
    std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size() - offset),
                memory.data() + offset);
  }
  void ring(uint32_t bell) {
    auto* page = context_->at<rocefs_context_page>(0);
    std::atomic_ref(page->doorbells[bell / 64]).fetch_or(uint64_t{1} << bell % 64);
    std::atomic_ref(page->rung).fetch_or(uint64_t{1} << bell / 64);
  }
  template <class Wqe>
  static void spoil(Wqe& wqe, std::span<const uint8_t> bytes) {
    auto* raw = reinterpret_cast<uint8_t*>(&wqe);
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      raw[bytes[i] % sizeof wqe] = static_cast<uint8_t>(raw[bytes[i] % sizeof wqe] + bytes[i + 1]);
    }
  }
  void take_post(std::span<const uint8_t> bytes, uint32_t far_key) {
    rocefs_send_wqe wqe{};
    wqe.flags = ROCEFS_SEND_SIGNALED;
    wqe.rkey = far_key;
    wqe.remote_address = reinterpret_cast<uint64_t>(arenas[&arena_ == &arenas[0]].data());
    wqe.num_sge = 1;
    wqe.u.sges[0] = {reinterpret_cast<uint64_t>(arena_.data()), 3000, key_};
    spoil(wqe, bytes);
    auto* queue = &qp_->at<rocefs_qp_page>(0)->send;
    qp_->at<rocefs_send_wqe>(made_.send_offset)[queue->posted % made_.entries] = wqe;
    store_release(queue->posted, queue->posted + 1);
    ring(made_.doorbell);
  }
  void take_receive(std::span<const uint8_t> bytes) {
    rocefs_receive_wqe wqe{};
    wqe.num_sge = 1;
    wqe.sges[0] = {reinterpret_cast<uint64_t>(arena_.data()), kArena, key_};
    spoil(wqe, bytes);
    auto* queue = &qp_->at<rocefs_qp_page>(0)->receive;
    qp_->at<rocefs_receive_wqe>(made_.receive_offset)[queue->posted % made_.receive_entries] = wqe;
    store_release(queue->posted, queue->posted + 1);
    ring(made_.doorbell);
  }

  std::array<uint8_t, kArena>& arena_;
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<SharedMemory> context_;
  std::unique_ptr<Client> client_;
  std::vector<std::shared_ptr<SharedMemory>> memories_;  // all that were ever shared
  std::shared_ptr<SharedMemory> cq_, qp_;
  rocefs_created made_{};
  uint32_t key_ = 0;
  std::vector<uint32_t> qpns_, peers_;
};

class World {
 public:
  World() {
    for (Stander* end : {&near_, &far_}) {
      end->memory = LocalMemory::create(kOwnBytes);
      end->key = *end->device.memory().add(end->memory, kOwnAddress, kOwnBytes, kOwnPd,
                                           kLocalWrite | kRemoteWrite);
      QpInit init;
      init.pd = kOwnPd;
      init.send_cq = init.receive_cq = &end->queue;
      end->qp = *end->device.create_qp(init);
    }
    bring_up(near_, far_);
    bring_up(far_, near_);
    clients_[0] = std::make_unique<LyingClient>(near_.device, shared_[0], 0);
    clients_[1] = std::make_unique<LyingClient>(far_.device, shared_[1], 1);
    clients_[0]->connect(*clients_[1], 2);
    clients_[1]->connect(*clients_[0], 1);
    clients_[0]->set_peers(clients_[1]->qpns());
    clients_[1]->set_peers(clients_[0]->qpns());
  }
  ~World() {
    for (auto& client : clients_) client->leave();
    for (Stander* end : {&near_, &far_}) end->device.destroy_qp(*end->qp);
    scheduler_.run_until(scheduler_.now() + 100 * kMillisecond);
  }

  void take(uint8_t head, std::span<const uint8_t> bytes) {
    auto kind = static_cast<Kind>((head & 0x7f) % kKinds);
    size_t which = head >> 7;
    clients_[which]->take(kind, bytes, clients_[!which]->key());
    pass(kind == kTime ? kMillisecond : 5 * kMicrosecond);
  }
  // Honest queue pairs move data, whatever the clients have done.
  void check() {
    auto bytes = near_.memory->bytes();
    for (size_t i = 0; i < 700; ++i) bytes[i] = static_cast<uint8_t>(i * 3 + 1);
    SendRequest request;
    request.op = SendOp::kWrite;
    request.sges = Sge{kOwnAddress, 700, near_.key};
    request.remote_address = kOwnAddress;
    request.rkey = far_.key;
    fuzz::require(bool(near_.qp->post(request)));
    std::array<Completion, 4> done;
    size_t count = 0;
    for (int i = 0; i < 100 && count == 0; ++i) {
      pass(100 * kMicrosecond);
      count = near_.queue.poll(done);
    }
    fuzz::require(count == 1 && done[0].status == WcStatus::kSuccess);
    fuzz::require(std::equal(bytes.begin(), bytes.begin() + 700, far_.memory->bytes().begin()));
  }

 private:
  struct Stander {
    Device& device;
    CompletionQueue queue{16};
    std::shared_ptr<LocalMemory> memory;
    uint32_t key = 0;
    Qp* qp = nullptr;
    explicit Stander(Device& d) : device(d) {}
  };

  void bring_up(Stander& end, Stander& peer) {
    QpAttributes attributes;
    attributes.path_mtu = 256;
    attributes.access = kRemoteWrite;
    attributes.remote_qpn = peer.qp->number();
    attributes.path.local = gids_of(end.device.port().spec())[1];
    attributes.path.remote = gids_of(peer.device.port().spec())[1];
    fuzz::require(bool(end.qp->bring_up(attributes)));
  }
  void pass(TimeNs duration) {
    for (auto& client : clients_) client->settle();
    for (int i = 0; i < 4; ++i) {
      scheduler_.run_until(scheduler_.now() + duration / 4);
      for (auto& client : clients_) client->settle();
    }
  }

  Scheduler scheduler_;
  Outstanding outstanding_;
  Fabric fabric_{cable(), 1, scheduler_, outstanding_};
  Stander near_{*fabric_.device("d1")}, far_{*fabric_.device("d2")};
  std::array<Client::Shared, 2> shared_;
  std::array<std::unique_ptr<LyingClient>, 2> clients_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::span<const uint8_t> input(data, size);
  for (int record = 0; record < 48 && input.size() >= 2; ++record) {
    size_t length = std::min<size_t>(input[1], input.size() - 2);
    world.take(input[0], input.subspan(2, length));
    input = input.subspan(2 + length);
  }
  world.check();
  return 0;
}
