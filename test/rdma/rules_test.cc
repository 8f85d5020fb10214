// The transport's rules, a row each: the section of the IBTA's volume 1 that makes the rule, what
// it says, and a check. transport_test.cc has those that need longer stories.
#include <catch2/catch.hpp>

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kArea = 64 * 1024;

QpAttributes quick() {
  QpAttributes attributes;
  attributes.path_mtu = 256;
  attributes.timeout = 5;  // 131 us
  attributes.min_rnr_timer = 1;
  return attributes;
}

struct Pair {
  World world;
  Connection link;
  explicit Pair(const QpAttributes& attributes = quick(), QpType type = QpType::kRc)
      : link(world, kArea, attributes, nullptr, nullptr, type) {
    fill(near_bytes(), 5);
    fill(far_bytes(), 6);
  }
  std::span<uint8_t> near_bytes() { return bytes_of(*link.near_memory); }
  std::span<uint8_t> far_bytes() { return bytes_of(*link.far_memory); }
  std::vector<Completion> sent() { return Connection::poll(link.near_cq); }
  std::vector<Completion> received() { return Connection::poll(link.far_cq); }
  PortCounters& near() { return world.counters("mb_0"); }
  PortCounters& far() { return world.counters("mb_1"); }
  bool same(uint64_t near_at, uint64_t far_at, uint64_t length) {
    auto a = near_bytes().subspan(near_at, length), b = far_bytes().subspan(far_at, length);
    return std::equal(a.begin(), a.end(), b.begin());
  }
  uint64_t word(std::span<uint8_t> bytes, uint64_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  void put(std::span<uint8_t> bytes, uint64_t at, uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  // Posts one request, runs, and returns how it ended.
  WcStatus outcome(const SendRequest& request) {
    link.post(request);
    REQUIRE(world.run_idle());
    auto all = sent();
    REQUIRE(all.size() == 1);
    return all[0].status;
  }
};

// Looks at what passes a link; true from `script` drops it.
struct Watch {
  Meddler meddler;
  Watch(Pair& pair, const char* link, std::function<bool(const wire::Parsed&, Packet&)> script)
      : meddler(pair.world, pair.world.link(link), 1, {}) {
    meddler.script = std::move(script);
  }
};
using Script = std::function<bool(const wire::Parsed&, Packet&)>;
Script drop_once(wire::Opcode opcode) {
  auto dropped = std::make_shared<bool>(false);
  return [=](const wire::Parsed& parsed, Packet&) {
    return parsed.headers.bth.opcode == opcode && !std::exchange(*dropped, true);
  };
}

void psns_wrap() {
  for (uint32_t first : {0xffffffu, 0xfffffeu, 0xfffff0u}) {
    QpAttributes attributes = quick();
    attributes.send_psn = first;
    attributes.receive_psn = 0xfffffd;
    Pair pair(attributes);
    pair.link.post(pair.link.write(1, 0, 256 * 5));
    pair.link.post(pair.link.read(2, 8192, 256 * 40));
    pair.link.post(pair.link.fetch_add(3, 32768, 1, 32768));
    REQUIRE(pair.world.run_idle());
    for (const Completion& one : pair.sent()) CHECK(one.status == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, 256 * 5));
    CHECK(pair.same(8192, 8192, 256 * 40));
  }
}

void reads_of_every_length() {
  Pair pair;
  uint64_t at = 0;
  for (uint32_t length : {0u, 1u, 255u, 256u, 257u, 512u, 4096u, 10'001u}) {
    pair.link.post(pair.link.read(length, at, length));
    REQUIRE(pair.world.run_idle());
    auto sent = pair.sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == WcStatus::kSuccess);
    CHECK(sent[0].opcode == WcOpcode::kRead);
    CHECK(sent[0].byte_len == length);
    CHECK(pair.same(at, at, length));
    at += length + 16;
  }
  CHECK(pair.far().rx_read_requests.get() == 8);
}

void a_read_sees_the_write_before_it() {
  Pair pair;
  pair.link.post(pair.link.write(1, 0, 5000));
  SendRequest read = pair.link.read(2, 0, 5000);
  read.sges = Sge{pair.link.near_address + 10'000, 5000, pair.link.near_key};
  pair.link.post(read);
  REQUIRE(pair.world.run_idle());
  CHECK(pair.same(0, 0, 5000));
  CHECK(pair.same(10'000, 0, 5000));
}

void access(uint8_t qp_access, uint8_t region_access, SendOp op, WcStatus expected) {
  QpAttributes attributes = quick();
  World world;
  Connection link(world, kArea, attributes);
  REQUIRE(link.far->modify(
      QpState::kRts,
      [&] {
        QpAttributes a;
        a.access = qp_access;
        return a;
      }(),
      kQpAccess));
  uint32_t key = *link.far_device.memory().add(link.far_memory, 0x5000000, kArea, Connection::kPd,
                                               region_access);
  SendRequest request = link.write(1, 0, 8);
  request.op = op;
  request.remote_address = 0x5000000;
  request.rkey = key;
  link.post(request);
  REQUIRE(world.run_idle());
  CHECK(Connection::poll(link.near_cq).at(0).status == expected);
  bool refused = expected == WcStatus::kRemoteAccessError;
  CHECK(world.counters("mb_0").req_remote_access_errors.get() == refused);
  CHECK(world.counters("mb_1").resp_remote_access_errors.get() == refused);
}

void rights_of_queue_pair_and_region() {
  constexpr uint8_t kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
  struct {
    SendOp op;
    uint8_t right;
  } rows[] = {{SendOp::kWrite, kRemoteWrite},
              {SendOp::kRead, kRemoteRead},
              {SendOp::kFetchAdd, kRemoteAtomic},
              {SendOp::kCompareSwap, kRemoteAtomic}};
  for (const auto& row : rows) {
    uint8_t without = static_cast<uint8_t>(kAll & ~row.right);
    access(kAll, kAll, row.op, WcStatus::kSuccess);
    access(without, kAll, row.op, WcStatus::kRemoteAccessError);
    access(kAll, without, row.op, WcStatus::kRemoteAccessError);
  }
}

void bounds_and_domains() {
  for (SendOp op : {SendOp::kWrite, SendOp::kRead}) {
    for (int wrong = 0; wrong < 4; ++wrong) {
      Pair pair;
      SendRequest request = pair.link.write(1, 0, 100);
      request.op = op;
      if (wrong == 0) request.remote_address = pair.link.far_address + kArea - 99;
      if (wrong == 1) request.remote_address = pair.link.far_address - 1;
      if (wrong == 2) request.rkey ^= 1;  // a key of another life
      if (wrong == 3) {                   // of another protection domain
        request.rkey = *pair.link.far_device.memory().add(pair.link.far_memory, 0x5000000, kArea,
                                                          77, Connection::kAllRights);
        request.remote_address = 0x5000000;
      }
      CHECK(pair.outcome(request) == WcStatus::kRemoteAccessError);
    }
  }
}

void nothing_needs_no_right() {
  for (SendOp op : {SendOp::kWrite, SendOp::kRead}) {
    Pair pair;
    SendRequest request = pair.link.write(1, 0, 0);
    request.op = op;
    request.rkey = 0xdeadbeef;
    CHECK(pair.outcome(request) == WcStatus::kSuccess);
  }
}

void atomics_compute() {
  Pair pair;
  pair.put(pair.far_bytes(), 80, 40);
  CHECK(pair.outcome(pair.link.fetch_add(1, 80, 2, 0)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 0) == 40);
  CHECK(pair.word(pair.far_bytes(), 80) == 42);
  SendRequest swap = pair.link.fetch_add(2, 80, 0, 8);
  swap.op = SendOp::kCompareSwap;
  swap.compare = 41;
  swap.swap_add = 7;
  CHECK(pair.outcome(swap) == WcStatus::kSuccess);
  CHECK(pair.word(pair.far_bytes(), 80) == 42);  // it was not 41
  swap.compare = 42;
  CHECK(pair.outcome(swap) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 8) == 42);
  CHECK(pair.word(pair.far_bytes(), 80) == 7);
  CHECK(pair.outcome(pair.link.fetch_add(3, 80, ~uint64_t{0}, 16)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.far_bytes(), 80) == 6);  // it wraps
  CHECK(pair.far().rx_atomic_requests.get() == 4);
}

void atomics_are_aligned() {
  for (uint64_t off = 1; off < 8; ++off) {
    Pair pair;
    CHECK(pair.outcome(pair.link.fetch_add(1, 80 + off, 1, 0)) == WcStatus::kRemoteInvalidRequest);
  }
}

void atomics_once() {
  // The answer is lost; asked again, the responder answers from memory of what it did.
  Pair pair;
  Watch watch(pair, "sw_0-mb_0", drop_once(wire::Opcode::kRcAtomicAck));
  pair.put(pair.far_bytes(), 80, 10);
  CHECK(pair.outcome(pair.link.fetch_add(1, 80, 1, 0)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 0) == 10);
  CHECK(pair.word(pair.far_bytes(), 80) == 11);
  CHECK(pair.far().duplicate_request.get() == 1);
  CHECK(pair.far().rx_atomic_requests.get() == 1);
}

void reads_resume() {
  // Each part of the response is lost once. The rest is asked for with PSN, address and length
  // advanced.
  using wire::Opcode;
  for (Opcode lost :
       {Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseMiddle, Opcode::kRcReadResponseLast}) {
    INFO(wire::opcode_info(lost).name);
    Pair pair;
    Watch back(pair, "sw_0-mb_0", drop_once(lost));
    std::vector<wire::Headers> asked;
    Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      asked.push_back(parsed.headers);
      return false;
    });
    CHECK(pair.outcome(pair.link.read(1, 0, 256 * 10)) == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, 256 * 10));
    REQUIRE(asked.size() == 2);
    uint32_t skipped = asked[1].bth.psn - asked[0].bth.psn;
    uint32_t expected = lost == Opcode::kRcReadResponseFirst    ? 0
                        : lost == Opcode::kRcReadResponseMiddle ? 1
                                                                : 9;
    CHECK(skipped == expected);
    CHECK(asked[1].reth.va == asked[0].reth.va + 256 * skipped);
    CHECK(asked[1].reth.dma_len == 256 * (10 - skipped));
    bool told = lost != Opcode::kRcReadResponseLast;  // by what came after it
    CHECK(pair.near().implied_nak_seq_err.get() == told);
    CHECK(pair.near().local_ack_timeout_err.get() == !told);
  }
}

void implied_naks() {
  // An acknowledgement of something later says that the READ's response was lost.
  Pair pair;
  Watch back(pair, "sw_0-mb_0", drop_once(wire::Opcode::kRcReadResponseOnly));
  pair.link.post(pair.link.read(1, 0, 100));
  pair.link.post(pair.link.write(2, 1000, 100));
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].wr_id == 1);
  for (const Completion& one : sent) CHECK(one.status == WcStatus::kSuccess);
  CHECK(pair.near().implied_nak_seq_err.get() == 1);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

void depth_of_reads() {
  QpAttributes attributes = quick();
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
  Pair pair(attributes);
  int open = 0, most = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.opcode == wire::Opcode::kRcReadRequest) most = std::max(most, ++open);
    return false;
  });
  Watch back(pair, "mb_1-sw_0", [&](const wire::Parsed& parsed, Packet&) {
    open -= parsed.headers.bth.opcode == wire::Opcode::kRcReadResponseLast;
    return false;
  });
  for (uint64_t i = 0; i < 10; ++i) pair.link.post(pair.link.read(i, i * 1000, 1000));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().size() == 10);
  CHECK(most == 2);
}

void too_many_reads() {
  World world;
  QpAttributes attributes = quick();
  attributes.max_rd_atomic = 8;
  attributes.max_dest_rd_atomic = 1;
  Connection link(world, kArea, attributes);
  for (uint64_t i = 0; i < 4; ++i) link.post(link.read(i, i * 9000, 9000));
  REQUIRE(world.run_idle());
  auto sent = Connection::poll(link.near_cq);
  REQUIRE(sent.size() == 4);
  // The first had its place, and its answer comes before the refusal of the second.
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kRemoteInvalidRequest);
  CHECK(sent[2].status == WcStatus::kFlushed);
}

void no_reads_at_all() {
  QpAttributes attributes = quick();
  attributes.max_rd_atomic = 0;
  Pair pair(attributes);
  CHECK(pair.outcome(pair.link.read(1, 0, 100)) == WcStatus::kLocalQpOperationError);
}

void local_rights() {
  {  // a READ writes into the near memory
    Pair pair;
    SendRequest read = pair.link.read(1, 0, 100);
    uint32_t key = *pair.link.near_device.memory().add(pair.link.near_memory, 0x7000000, kArea,
                                                       Connection::kPd, 0);
    read.sges = Sge{0x7000000, 100, key};
    CHECK(pair.outcome(read) == WcStatus::kLocalProtectionError);
  }
  Pair pair;
  SendRequest add = pair.link.fetch_add(1, 80, 1, 0);
  add.sges = Sge{pair.link.near_address, 16, pair.link.near_key};
  CHECK(pair.outcome(add) == WcStatus::kLocalLengthError);
}

void immediates() {
  Pair pair;
  pair.link.post(pair.link.receive(7, 0, 1000));
  pair.link.post(pair.link.receive(8, 40'000, 0));
  SendRequest send = pair.link.send(1, 0, 1000);
  send.op = SendOp::kSendImm;
  send.immediate = 0xcafe;
  pair.link.post(send);
  SendRequest write = pair.link.write(2, 2000, 1000);
  write.op = SendOp::kWriteImm;
  write.immediate = 0xf00d;
  pair.link.post(write);
  REQUIRE(pair.world.run_idle());
  auto received = pair.received();
  REQUIRE(received.size() == 2);
  CHECK(received[0].wr_id == 7);
  CHECK(received[0].opcode == WcOpcode::kReceive);
  CHECK(received[0].has_immediate);
  CHECK(received[0].immediate == 0xcafe);
  CHECK(received[0].byte_len == 1000);
  CHECK(received[1].wr_id == 8);
  CHECK(received[1].opcode == WcOpcode::kReceiveWriteImm);
  CHECK(received[1].immediate == 0xf00d);
  CHECK(received[1].byte_len == 1000);
  CHECK(pair.same(2000, 2000, 1000));
}

void write_with_immediate_needs_a_receive() {
  Pair pair;
  SendRequest write = pair.link.write(1, 0, 256 * 4);
  write.op = SendOp::kWriteImm;
  pair.link.post(write);
  pair.world.scheduler.run_until(40 * kMicrosecond);
  CHECK(pair.far().out_of_buffer.get() >= 2);
  CHECK(pair.same(0, 0, 256 * 3));  // only the last packet waits
  pair.link.post(pair.link.receive(7, 40'000, 0));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.received().at(0).wr_id == 7);
  CHECK(pair.far().rx_write_requests.get() == 1);
}

void solicited_events() {
  Pair pair;
  int events = 0;
  pair.link.far_cq.set_event_handler([&] { ++events; });
  auto send = [&](bool solicited) {
    pair.link.post(pair.link.receive(1, 0, 100));
    SendRequest request = pair.link.send(1, 0, 100);
    request.solicited = solicited;
    pair.link.post(request);
    REQUIRE(pair.world.run_idle());
  };
  send(true);
  CHECK(events == 0);  // nobody asked
  pair.link.far_cq.request_event(true);
  send(false);
  CHECK(events == 0);
  send(true);
  CHECK(events == 1);
  send(true);
  CHECK(events == 1);  // once
  pair.link.far_cq.request_event(false);
  pair.link.far_cq.request_event(true);  // the wider wish stands
  send(false);
  CHECK(events == 2);
  pair.link.far_cq.request_event(true);
  REQUIRE(pair.link.far->modify(QpState::kError));
  CHECK(events == 2);  // nothing was queued
}

void errors_raise_solicited_events() {
  Pair pair;
  int events = 0;
  pair.link.far_cq.set_event_handler([&] { ++events; });
  pair.link.far_cq.request_event(true);
  pair.link.post(pair.link.receive(1, 0, 100));
  REQUIRE(pair.link.far->modify(QpState::kError));
  CHECK(events == 1);
}

void flush_order() {
  Pair pair;
  for (uint64_t i = 0; i < 3; ++i) pair.link.post(pair.link.write(i, 0, 100));
  SendRequest bad = pair.link.write(3, 0, 100);
  bad.rkey ^= 1;
  pair.link.post(bad);
  for (uint64_t i = 4; i < 8; ++i) pair.link.post(pair.link.read(i, 0, 100));
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  REQUIRE(sent.size() == 8);
  for (uint64_t i = 0; i < 8; ++i) {
    CHECK(sent[i].wr_id == i);
    CHECK(sent[i].status == (i < 3    ? WcStatus::kSuccess
                             : i == 3 ? WcStatus::kRemoteAccessError
                                      : WcStatus::kFlushed));
  }
  CHECK(pair.link.near->state() == QpState::kError);
  CHECK(pair.link.far->state() == QpState::kError);
  CHECK(pair.near().req_cqe_flush_error.get() == 4);
  CHECK(pair.near().req_cqe_error.get() == 1);
}

void fences() {
  Pair pair;
  bool answered = false, early = false;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
    answered |= wire::opcode_info(parsed.headers.bth.opcode).is_read_response;
    return false;
  });
  Watch forth(pair, "mb_0-sw_0", [&](const wire::Parsed& parsed, Packet&) {
    if (wire::opcode_info(parsed.headers.bth.opcode).is_write) early |= !answered;
    return false;
  });
  pair.link.post(pair.link.read(1, 0, 100));
  SendRequest fenced = pair.link.write(2, 1000, 100);
  fenced.fence = true;
  pair.link.post(fenced);
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().size() == 2);
  CHECK_FALSE(early);
}

void bad_responses() {
  Pair pair;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.opcode == wire::Opcode::kRcReadResponseMiddle) {
      packet.payload.length -= 4;
      wire::Headers headers = parsed.headers;
      wire::finish_lengths(headers, packet.payload.length);
      wire::emit(headers, packet.header);
    }
    return false;
  });
  CHECK(pair.outcome(pair.link.read(1, 0, 256 * 4)) == WcStatus::kBadResponse);
}

void memory_that_goes_before_the_answer() {
  Pair pair;
  bool gone = false;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
    bool response = wire::opcode_info(parsed.headers.bth.opcode).is_read_response;
    if (response && !std::exchange(gone, true)) {
      REQUIRE(pair.link.far_device.memory().remove(pair.link.far_key));
    }
    return false;
  });
  CHECK(pair.outcome(pair.link.read(1, 0, 256 * 200)) == WcStatus::kRemoteAccessError);
  CHECK(pair.link.far->state() == QpState::kError);
}

void lists_scatter_and_gather() {
  Pair pair;
  SendRequest send = pair.link.send(1, 0, 0);
  send.sges = {};
  send.sges.add({pair.link.near_address + 100, 300, pair.link.near_key});
  send.sges.add({pair.link.near_address + 5000, 0, 0});
  send.sges.add({pair.link.near_address + 1000, 500, pair.link.near_key});
  ReceiveRequest receive = pair.link.receive(2, 0, 0);
  receive.sges = {};
  receive.sges.add({pair.link.far_address + 100, 7, pair.link.far_key});
  receive.sges.add({pair.link.far_address + 200, 900, pair.link.far_key});
  pair.link.post(receive);
  CHECK(pair.outcome(send) == WcStatus::kSuccess);
  CHECK(pair.received().at(0).byte_len == 800);
  CHECK(pair.same(100, 100, 7));
  CHECK(pair.same(107, 200, 293));
  CHECK(pair.same(1000, 493, 500));
  // A READ scatters its response in the same way.
  SendRequest read = pair.link.read(3, 20'000, 800);
  read.sges = {};
  read.sges.add({pair.link.near_address + 30'000, 3, pair.link.near_key});
  read.sges.add({pair.link.near_address + 40'000, 797, pair.link.near_key});
  CHECK(pair.outcome(read) == WcStatus::kSuccess);
  CHECK(pair.same(30'000, 20'000, 3));
  CHECK(pair.same(40'000, 20'003, 797));
}

struct Row {
  const char* section;
  const char* says;
  void (*check)();
};

const Row kRows[] = {
    {"9.7.1", "PSNs wrap in the middle of messages", psns_wrap},
    {"9.4.4", "a READ brings any number of bytes", reads_of_every_length},
    {"9.5", "a READ sees the WRITE before it", a_read_sees_the_write_before_it},
    {"9.7.4.1.5", "rights of queue pair and region are both needed",
     rights_of_queue_pair_and_region},
    {"9.7.4.1.5", "bounds, keys and protection domains are checked", bounds_and_domains},
    {"9.7.4.1.5", "a request for no bytes needs no right", nothing_needs_no_right},
    {"9.4.5", "atomics compute on 64 bits and return what was there", atomics_compute},
    {"9.4.5", "an atomic's address is a multiple of 8", atomics_are_aligned},
    {"9.4.5", "an atomic asked for again is answered again, not executed again", atomics_once},
    {"9.7.3", "a half-answered READ is asked for its rest", reads_resume},
    {"9.7.6", "a later answer implies a NAK for a lost response", implied_naks},
    {"9.7.3", "no more READs are under way than agreed", depth_of_reads},
    {"9.7.4.1", "more READs than agreed are an invalid request", too_many_reads},
    {"9.7.3", "without initiator depth a READ is a local QP operation error", no_reads_at_all},
    {"10.6.4", "what a READ or atomic writes into must be writable, and fit", local_rights},
    {"9.4.1", "immediate data reaches the receiver's completion", immediates},
    {"9.4.3", "a WRITE with immediate waits for a receive request",
     write_with_immediate_needs_a_receive},
    {"11.4.2", "events are raised once, as asked for: next or solicited", solicited_events},
    {"11.4.2", "an error raises a solicited event", errors_raise_solicited_events},
    {"10.3.1", "requests end in order: success, the failure, flushed", flush_order},
    {"10.8.3", "a fence waits for the READs before it", fences},
    {"9.9.2", "a response that does not fit is a bad response", bad_responses},
    {"9.9.3", "memory that goes before its READ is answered is a remote access error",
     memory_that_goes_before_the_answer},
    {"10.7.2", "lists scatter and gather, empty entries included", lists_scatter_and_gather},
};

}  // namespace

TEST_CASE("rules: each holds") {
  for (const Row& row : kRows) {
    INFO("IBTA " << row.section << ": " << row.says);
    row.check();
  }
}
