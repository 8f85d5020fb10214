// XRC: two queue pairs send to the same receiving end, whose packets name shared receive queues.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kDomain = 7, kPd = 1, kQueuePd = 9;

class OwnBytes final : public DirectMemory {
 public:
  explicit OwnBytes(std::vector<uint8_t>& bytes) : DirectMemory(bytes) {}
};

struct XrcPair {
  explicit XrcPair(uint32_t domain = kDomain) {
    QpInit init;
    init.pd = kPd;
    init.type = QpType::kXrcSend;
    init.send_cq = init.receive_cq = &sent;
    near = *near_device.create_qp(init);
    init.type = QpType::kXrcReceive;
    init.send_cq = init.receive_cq = nullptr;
    init.send_depth = init.receive_depth = 0;
    init.xrc_domain = domain;
    init.observer = &watch;
    far = *far_device.create_qp(init);
    near_key = *near_device.memory().add(std::make_shared<OwnBytes>(from), 0, from.size(), kPd,
                                         kLocalWrite);
    uint8_t all = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
    far_key = *far_device.memory().add(std::make_shared<OwnBytes>(to), 0, to.size(), kQueuePd, all);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + 1);
    connect(*near, *far, near_device, far_device);
    connect(*far, *near, far_device, near_device);
  }
  void connect(Qp& qp, Qp& other, Device& here, Device& there) {
    QpAttributes attributes;
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    attributes.path.local = *here.port().gids().at(0);
    attributes.path.remote = *there.port().gids().at(0);
    attributes.remote_qpn = other.number();
    attributes.rnr_retry = 0;
    REQUIRE(qp.bring_up(attributes));
  }
  SendRequest request(SendOp op, uint32_t srqn, uint32_t length = 3000) const {
    SendRequest request;
    request.op = op;
    request.remote_srqn = srqn;
    request.rkey = far_key;
    request.remote_address = 8192;
    request.sges = Sge{0, length, near_key};
    return request;
  }
  void post(const SendRequest& request) {
    REQUIRE(near->post(request));
    REQUIRE(world.run_idle());
  }
  WcStatus status() {
    Completion one;
    REQUIRE(sent.poll({&one, 1}) == 1);
    return one.status;
  }

  struct Queue {
    explicit Queue(XrcPair& pair, uint32_t domain = kDomain)
        : queues(pair.far_device.xrc_queues()), number(queues.add({&receives, &cq, domain})) {
      for (uint64_t i = 0; i < 4; ++i) {
        REQUIRE(receives.post({100 + i, Sge{i * 4096, 4096, pair.far_key}}));
      }
    }
    ~Queue() { queues.remove(number); }
    CompletionQueue cq{16};
    ReceiveQueue receives{16, kQueuePd};
    XrcQueues& queues;
    uint32_t number;
  };
  struct Watch final : QpObserver {
    void qp_event(QpEvent event) override { events.push_back(event); }
    std::vector<QpEvent> events;
  };

  World world;
  Device& near_device = world.device("mb_0");
  Device& far_device = world.device("mb_1");
  CompletionQueue sent{16};
  Watch watch;
  Qp* near = nullptr;
  Qp* far = nullptr;
  std::vector<uint8_t> from = std::vector<uint8_t>(1 << 15), to = std::vector<uint8_t>(1 << 15);
  uint32_t near_key = 0, far_key = 0;
};

}  // namespace

TEST_CASE("XRC: each request goes to the SRQ that it names, and completes in that one's CQ") {
  XrcPair pair;
  XrcPair::Queue one(pair), other(pair);
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  size_t seen = 0;
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    seen += parsed.headers.bth.opcode == wire::Opcode::kXrcSendMiddle &&
            parsed.headers.xrc.srqn == other.number;
    return false;
  };
  pair.post(pair.request(SendOp::kSend, other.number));
  pair.post(pair.request(SendOp::kSendImm, one.number, 10));
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(seen == 1);  // 3000 octets in packets of 1024: every packet names the queue
  for (XrcPair::Queue* queue : {&one, &other}) {
    Completion received;
    REQUIRE(queue->cq.poll({&received, 1}) == 1);
    CHECK(received.wr_id == 100);
    CHECK(received.qpn == pair.far->number());
    CHECK(received.srqn == queue->number);
    CHECK(received.byte_len == (queue == &one ? 10 : 3000));
  }
  CHECK(std::equal(pair.to.begin() + 10, pair.to.begin() + 3000, pair.from.begin() + 10));
}

TEST_CASE("XRC: WRITEs, READs and atomics reach the memory of the SRQ's protection domain") {
  XrcPair pair;
  XrcPair::Queue queue(pair);
  pair.post(pair.request(SendOp::kWrite, queue.number));
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(std::equal(pair.to.begin() + 8192, pair.to.begin() + 11192, pair.from.begin()));
  pair.to[8192] = 99;
  pair.post(pair.request(SendOp::kRead, queue.number));
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(pair.from[0] == 99);
  SendRequest add = pair.request(SendOp::kFetchAdd, queue.number, 8);
  add.swap_add = 1;
  pair.post(add);
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(pair.to[8192] == 100);
  CHECK(pair.from[0] == 99);
  // A region of the queue pair's own domain is not the SRQ's.
  uint32_t own = *pair.far_device.memory().add(std::make_shared<OwnBytes>(pair.to), 0,
                                               pair.to.size(), kPd, kLocalWrite | kRemoteWrite);
  SendRequest write = pair.request(SendOp::kWrite, queue.number);
  write.rkey = own;
  pair.post(write);
  CHECK(pair.status() == WcStatus::kRemoteAccessError);
}

TEST_CASE("XRC: a queue that is not there, or is of another domain, refuses") {
  XrcPair pair;
  XrcPair::Queue foreign(pair, kDomain + 1);
  bool exists = GENERATE(true, false);
  pair.post(pair.request(SendOp::kSend, foreign.number + !exists));
  CHECK(pair.status() == (exists ? WcStatus::kRemoteAccessError : WcStatus::kRemoteInvalidRequest));
  REQUIRE(!pair.watch.events.empty());
  CHECK(pair.watch.events.back() ==
        (exists ? QpEvent::kAccessViolation : QpEvent::kInvalidRequest));
  CHECK(pair.far->state() == QpState::kError);
  CHECK(foreign.receives.size() == 4);
}

TEST_CASE("XRC: an SRQ without requests answers with an RNR NAK") {
  XrcPair pair;
  XrcPair::Queue queue(pair);
  while (!queue.receives.empty()) queue.receives.take();
  pair.post(pair.request(SendOp::kSend, queue.number));
  CHECK(pair.status() == WcStatus::kRnrRetryExceeded);
}

TEST_CASE("XRC: lost packets are sent again") {
  XrcPair pair;
  XrcPair::Queue queue(pair);
  Link& link = pair.world.link("mb_0-sw_0");
  set(link, lossy(link.parameters(), 0.2));
  for (int i = 0; i < 4; ++i) pair.post(pair.request(SendOp::kSend, queue.number));
  for (int i = 0; i < 4; ++i) CHECK(pair.status() == WcStatus::kSuccess);
  std::array<Completion, 8> received;
  CHECK(queue.cq.poll(received) == 4);
  CHECK(pair.near_device.port().counters().packet_seq_err.get() > 0);
}

TEST_CASE("XRC: a sending end takes no requests, a receiving one posts none") {
  XrcPair pair;
  XrcPair::Queue queue(pair);
  CHECK(!pair.far->post(pair.request(SendOp::kSend, queue.number)));
  uint64_t before = pair.near_device.port().counters().rx_unknown_qp.get();
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  // Sends the request back, as if it came from the far end.
  meddler.script = [&](const wire::Parsed& parsed, Packet& packet) {
    wire::Headers headers = parsed.headers;
    std::swap(headers.v6.src, headers.v6.dst);
    headers.bth.dest_qpn = pair.near->number();
    PacketPtr twin = meddler.copy(packet);
    wire::emit(headers, twin->header);
    pair.near_device.port().receive(twin.release(), pair.world.scheduler.now());
    return false;
  };
  pair.post(pair.request(SendOp::kSend, queue.number, 16));
  CHECK(pair.status() == WcStatus::kSuccess);
  CHECK(pair.near_device.port().counters().rx_unknown_qp.get() == before + 1);
}

TEST_CASE("XRC: an SRQ that goes in the middle of a message takes no more of its octets") {
  XrcPair pair;
  auto queue = std::make_unique<XrcPair::Queue>(pair);
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.opcode == wire::Opcode::kXrcSendLast) queue.reset();
    return false;
  };
  pair.post(pair.request(SendOp::kSend, queue->number));
  CHECK(pair.status() == WcStatus::kRemoteInvalidRequest);
  CHECK(pair.to[0] == pair.from[0]);
  CHECK(pair.to[2048] == 0);  // of the last of three packets; the program may use the buffer again
  CHECK(pair.far->state() == QpState::kError);
}

TEST_CASE("XRC: a receiving end that goes in the middle of a message flushes the SRQ's receive") {
  XrcPair pair;
  XrcPair::Queue queue(pair);
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    bool last = parsed.headers.bth.opcode == wire::Opcode::kXrcSendLast;
    if (last && pair.far) pair.far_device.destroy_qp(*std::exchange(pair.far, nullptr));
    return false;
  };
  pair.post(pair.request(SendOp::kSend, queue.number));
  CHECK(pair.status() == WcStatus::kRetryExceeded);
  Completion received;
  REQUIRE(queue.cq.poll({&received, 1}) == 1);
  CHECK(received.wr_id == 100);
  CHECK(received.status == WcStatus::kFlushed);
  CHECK(queue.receives.size() == 3);
}
