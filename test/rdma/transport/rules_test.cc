// Rules of the transport for all requests, one per row. transport_test.cc has those that need
// longer scenarios.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

void psns_wrap() {
  for (uint32_t first : {0xffffffu, 0xfffffeu, 0xfffff0u}) {
    QpAttributes attributes = quick_attributes();
    attributes.send_psn = first;
    attributes.receive_psn = 0xfffffd;
    Pair pair(attributes);
    fill(pair.far_bytes(), 6);
    pair.link.post(pair.link.write(1, 0, 256 * 5));
    pair.link.post(pair.link.read(2, 8192, 256 * 40));
    pair.link.post(pair.link.fetch_add(3, 32768, 1, 32768));
    REQUIRE(pair.world.run_idle());
    for (const Completion& one : pair.sent()) CHECK(one.status == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, 256 * 5));
    CHECK(pair.same(8192, 8192, 256 * 40));
  }
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
  QpAttributes attributes = quick_attributes();
  World world;
  Connection link(world, kPairArea, attributes);
  REQUIRE(link.far->modify(
      QpState::kRts,
      [&] {
        QpAttributes a;
        a.access = qp_access;
        return a;
      }(),
      kQpAccess));
  uint32_t key = *link.far_device.memory().add(link.far_memory, 0x5000000, kPairArea,
                                               Connection::kPd, region_access);
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
  bool unsupported = expected == WcStatus::kRemoteInvalidRequest;
  CHECK(world.counters("mb_0").req_remote_invalid_request.get() == unsupported);
}

void rights_of_queue_pair_and_region() {
  constexpr uint8_t kAll = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;
  struct {
    SendOp op;
    uint8_t right;
  } rows[] = {{SendOp::kWrite, kRemoteWrite},
              {SendOp::kRead, kRemoteRead},
              {SendOp::kFetchAdd, kRemoteAtomic},
              {SendOp::kCompareSwap, kRemoteAtomic},
              {SendOp::kAtomicWrite, kRemoteWrite}};
  for (const auto& row : rows) {
    uint8_t without = static_cast<uint8_t>(kAll & ~row.right);
    access(kAll, kAll, row.op, WcStatus::kSuccess);
    access(without, kAll, row.op, WcStatus::kRemoteInvalidRequest);
    access(kAll, without, row.op, WcStatus::kRemoteAccessError);
  }
}

void bounds_and_domains() {
  for (SendOp op : {SendOp::kWrite, SendOp::kRead}) {
    for (int wrong = 0; wrong < 4; ++wrong) {
      Pair pair;
      SendRequest request = pair.link.write(1, 0, 100);
      request.op = op;
      if (wrong == 0) request.remote_address = pair.link.far_address + kPairArea - 99;
      if (wrong == 1) request.remote_address = pair.link.far_address - 1;
      if (wrong == 2) request.rkey ^= 1;  // a stale key
      if (wrong == 3) {                   // memory of another protection domain
        request.rkey = *pair.link.far_device.memory().add(pair.link.far_memory, 0x5000000,
                                                          kPairArea, 77, Connection::kAllRights);
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
  CHECK(events == 0);  // no event requested
  pair.link.far_cq.request_event(true);
  send(false);
  CHECK(events == 0);
  send(true);
  CHECK(events == 1);
  send(true);
  CHECK(events == 1);  // one event for each request
  pair.link.far_cq.request_event(false);
  pair.link.far_cq.request_event(true);  // the wider request stays
  send(false);
  CHECK(events == 2);
  pair.link.far_cq.request_event(true);
  REQUIRE(pair.link.far->modify(QpState::kError));
  CHECK(events == 2);  // no request was queued
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

void lists_scatter_and_gather() {
  Pair pair;
  fill(pair.far_bytes(), 6);
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

const Rule kRules[] = {
    {"9.7.1", "PSNs wrap in the middle of messages", psns_wrap},
    {"9.5", "a READ sees the WRITE before it", a_read_sees_the_write_before_it},
    {"9.7.4.1.5", "rights of queue pair and region are both needed",
     rights_of_queue_pair_and_region},
    {"9.7.4.1.5", "bounds, keys and protection domains are checked", bounds_and_domains},
    {"9.7.4.1.5", "a request for no bytes needs no right", nothing_needs_no_right},
    {"9.4.1", "immediate data reaches the receiver's completion", immediates},
    {"9.4.3", "a WRITE with immediate waits for a receive request",
     write_with_immediate_needs_a_receive},
    {"11.4.2", "events are raised once, as asked for: next or solicited", solicited_events},
    {"11.4.2", "an error raises a solicited event", errors_raise_solicited_events},
    {"10.3.1", "requests end in order: success, the failure, flushed", flush_order},
    {"10.8.3", "a fence waits for the READs before it", fences},
    {"10.7.2", "lists scatter and gather, empty entries included", lists_scatter_and_gather},
};

}  // namespace

TEST_CASE("rules: each rule for requests holds") {
  check_rules(kRules);
}
