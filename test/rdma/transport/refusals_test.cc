// Errors that a responder finds: the NAK, how the request ends at the near end, and what the far
// end is told of it: a receive that ends with an error or, where no receive tells of it, an event
// (IBTA C9-222.1.1). All requests are unsignaled: errors complete them too.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/rdma/transport/lone.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint8_t kAll = kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct Refusal {
  const char* what;
  SendOp op;
  uint32_t length;
  void (*spoil)(Lone& lone, SendRequest& request);
  uint8_t syndrome;
  WcStatus near;
  std::vector<WcStatus> receives;  // how those of the far end end, in case one is posted
  std::vector<QpEvent> events;     // of the far end
};

// A receive request of 100 octets.
void post_receive(Lone& lone, uint32_t key) {
  ReceiveRequest receive;
  receive.sges = Sge{1000, 100, key};
  REQUIRE(lone.far.qp.post(receive));
}
void lack_key(Lone&, SendRequest& request) {
  request.rkey ^= 0x100000;
}
void misalign(Lone&, SendRequest& request) {
  request.remote_address = 1;
}
void lack_write(Lone& lone, SendRequest&) {
  lone.far.allow(kAll & ~kRemoteWrite);
}
void lack_read(Lone& lone, SendRequest&) {
  lone.far.allow(kAll & ~kRemoteRead);
}
void lack_atomic(Lone& lone, SendRequest&) {
  lone.far.allow(kAll & ~kRemoteAtomic);
}
void receive_100(Lone& lone, SendRequest&) {
  post_receive(lone, lone.far.key);
}
void receive_read_only(Lone& lone, SendRequest&) {
  post_receive(lone, lone.far.region(0));
}
void receive_but_lack_key(Lone& lone, SendRequest& request) {
  receive_100(lone, request);
  lack_key(lone, request);
}
void receive_but_lack_write(Lone& lone, SendRequest& request) {
  receive_100(lone, request);
  lack_write(lone, request);
}

constexpr auto kInvalid = aeth::kNakInvalidRequest, kAccess = aeth::kNakRemoteAccess,
               kOperation = aeth::kNakRemoteOperation;
constexpr auto kInvalidWc = WcStatus::kRemoteInvalidRequest,
               kAccessWc = WcStatus::kRemoteAccessError;
using Event = QpEvent;

const Refusal kRefusals[] = {
    {"a WRITE with a wrong R_Key",
     SendOp::kWrite,
     8,
     lack_key,
     kAccess,
     kAccessWc,
     {},
     {Event::kAccessViolation}},
    {"a READ with a wrong R_Key",
     SendOp::kRead,
     8,
     lack_key,
     kAccess,
     kAccessWc,
     {},
     {Event::kAccessViolation}},
    {"an atomic with a wrong R_Key",
     SendOp::kFetchAdd,
     8,
     lack_key,
     kAccess,
     kAccessWc,
     {},
     {Event::kAccessViolation}},
    {"a misaligned atomic",
     SendOp::kFetchAdd,
     8,
     misalign,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"a WRITE that the queue pair does not allow",
     SendOp::kWrite,
     8,
     lack_write,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"a WRITE of nothing that it does not allow",
     SendOp::kWrite,
     0,
     lack_write,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"a READ that it does not allow",
     SendOp::kRead,
     8,
     lack_read,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"a READ of nothing that it does not allow",
     SendOp::kRead,
     0,
     lack_read,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"an atomic that it does not allow",
     SendOp::kCompareSwap,
     8,
     lack_atomic,
     kInvalid,
     kInvalidWc,
     {},
     {Event::kInvalidRequest}},
    {"a WRITE with immediate that it does not allow",
     SendOp::kWriteImm,
     8,
     receive_but_lack_write,
     kInvalid,
     kInvalidWc,
     {WcStatus::kFlushed},
     {Event::kInvalidRequest}},
    {"a WRITE with immediate and a wrong R_Key",
     SendOp::kWriteImm,
     8,
     receive_but_lack_key,
     kAccess,
     kAccessWc,
     {WcStatus::kLocalAccessError},
     {}},
    {"a SEND longer than its receive",
     SendOp::kSend,
     101,
     receive_100,
     kInvalid,
     kInvalidWc,
     {WcStatus::kLocalLengthError},
     {}},
    {"a SEND whose receive may not be written",
     SendOp::kSend,
     8,
     receive_read_only,
     kOperation,
     WcStatus::kRemoteOperationError,
     {WcStatus::kLocalProtectionError},
     {}},
};

}  // namespace

TEST_CASE("refusals: each error has its NAK, its completions and its event") {
  for (const Refusal& one : kRefusals) {
    INFO(one.what);
    Lone lone;
    SendRequest request = lone.eight(one.op, 0);
    request.sges = Sge{0, one.length, lone.near.key};
    request.signaled = false;
    one.spoil(lone, request);
    REQUIRE(lone.near.qp.post(request));
    lone.request(lone.near.data());
    CHECK(lone.answer().syndrome == one.syndrome);
    CHECK(lone.near.completions() == std::vector<WcStatus>{one.near});
    CHECK(lone.near.qp.state() == QpState::kError);
    CHECK(lone.near.events.all.empty());
    CHECK(lone.far.completions() == one.receives);
    CHECK(lone.far.qp.state() == QpState::kError);
    CHECK(lone.far.events.all == one.events);
    CHECK(std::all_of(lone.far.bytes.begin(), lone.far.bytes.end(), [](int b) { return b == 0; }));
  }
}

// IBTA 9.7.4.1: resources come before the R_Key.
TEST_CASE("refusals: a WRITE with immediate and a wrong R_Key first waits for a receive") {
  Lone lone;
  SendRequest request = lone.eight(SendOp::kWriteImm, 0);
  lack_key(lone, request);
  REQUIRE(lone.near.qp.post(request));
  lone.request(lone.near.data());
  CHECK(aeth::kind_of(lone.answer().syndrome) == aeth::Kind::kRnr);
  CHECK(lone.far.qp.state() == QpState::kRts);
  receive_100(lone, request);
  REQUIRE(lone.scheduler.run_one(60 * kSecond));
  lone.request(lone.near.data());
  CHECK(lone.answer().syndrome == aeth::kNakRemoteAccess);
  CHECK(lone.far.completions() == std::vector<WcStatus>{WcStatus::kLocalAccessError});
}
