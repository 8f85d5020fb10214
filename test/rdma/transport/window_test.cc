// Memory windows, and the ways to invalidate them.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// A window of the far end over bytes 1000 to 2000 of its memory.
struct Windowed : Pair {
  uint32_t key = 0;
  uint8_t access = kRemoteWrite | kRemoteRead;
  Windowed() : Pair(QpType::kRc) { key = *link.far_device.memory().add_window(Connection::kPd); }
  SendRequest bind(uint64_t id) {
    SendRequest request;
    request.wr_id = id;
    request.op = SendOp::kBindWindow;
    request.rkey = key;
    request.bind_access = access;
    request.sges = Sge{link.far_address + 1000, 1000, link.far_key};
    return request;
  }
  WcStatus far_outcome(const SendRequest& request) {
    REQUIRE(link.far->post(request));
    run();
    return received().at(0).status;
  }
  WcStatus write(uint64_t offset, uint32_t length) {
    SendRequest request = link.write(1, offset, length);
    request.rkey = key;
    link.post(request);
    run();
    return sent().at(0).status;
  }
};

}  // namespace

TEST_CASE("window: a bound window is usable by its queue pair within its range, and no further") {
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    CHECK(pair.write(1000, 1000) == WcStatus::kSuccess);
    CHECK(pair.same(1000, 1000, 1000));
    CHECK(pair.link.far_device.memory().remove(pair.link.far_key).error().code == EBUSY);
    CHECK(pair.write(1999, 2) == WcStatus::kRemoteAccessError);
  }
  {
    Windowed pair;
    CHECK(pair.write(1000, 1) == WcStatus::kRemoteAccessError);  // not bound yet
  }
  {
    Windowed pair;
    pair.access = kRemoteRead;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    CHECK(pair.write(1000, 1) == WcStatus::kRemoteAccessError);
  }
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    Connection other(pair.world, kPairArea, quick_attributes());
    SendRequest request = pair.link.write(1, 1000, 10);
    request.rkey = pair.key;
    other.post(request);  // the far end of another queue pair
    request.sges = Sge{other.near_address, 10, other.near_key};
    pair.run();
    CHECK(Connection::poll(other.near_cq).at(0).status != WcStatus::kSuccess);
  }
}

TEST_CASE("window: a window that either end has invalidated cannot be used") {
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    SendRequest invalidate;
    invalidate.op = SendOp::kLocalInvalidate;
    invalidate.rkey = pair.key;
    CHECK(pair.far_outcome(invalidate) == WcStatus::kSuccess);
    CHECK(pair.link.far_device.memory().remove(pair.link.far_key));
    CHECK(pair.write(1000, 10) == WcStatus::kRemoteAccessError);
  }
  Windowed pair;
  CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
  pair.link.post(pair.link.receive(5, 0, 100));
  SendRequest send = pair.link.send(2, 0, 100);
  send.op = SendOp::kSendInvalidate;
  send.rkey = pair.key;
  pair.link.post(send);
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  auto received = pair.received();
  CHECK(received.at(0).has_invalidated);
  CHECK(received.at(0).immediate == pair.key);
  // The window may be bound again, under another key.
  pair.key = (pair.key & ~0xffu) | ((pair.key + 1) & 0xff);
  CHECK(pair.far_outcome(pair.bind(3)) == WcStatus::kSuccess);
  CHECK(pair.write(1000, 10) == WcStatus::kSuccess);
}

// IBTA 9.9.6.3, class J: the near end hears nothing, and tries again until it gives up.
TEST_CASE("window: a SEND that invalidates a region's key fails at its receiver, without a NAK") {
  Windowed pair;
  int answers = 0;
  Watch watch(pair, "mb_1-sw_0", [&](const wire::Parsed&, Packet&) { return ++answers, false; });
  pair.link.post(pair.link.receive(5, 0, 100));
  SendRequest send = pair.link.send(2, 0, 100);
  send.op = SendOp::kSendInvalidate;
  send.rkey = pair.link.far_key;  // the key of a region, not of a window
  pair.link.post(send);
  pair.run();
  CHECK(answers == 0);
  CHECK(pair.sent().at(0).status == WcStatus::kRetryExceeded);
  CHECK(pair.received().at(0).status == WcStatus::kRemoteInvalidRequest);
  CHECK(pair.link.far->state() == QpState::kError);
  CHECK(pair.link.far_device.memory().find(pair.link.far_key) != nullptr);
}

TEST_CASE("window: an invalid binding is a bind error") {
  for (int wrong = 0; wrong < 6; ++wrong) {
    INFO(wrong);
    Windowed pair;
    SendRequest bind = pair.bind(1);
    if (wrong == 0) bind.sges = Sge{pair.link.far_address + kPairArea - 10, 11, pair.link.far_key};
    if (wrong == 1) bind.rkey = pair.link.far_key;
    if (wrong == 2) bind.sges = Sge{pair.link.far_address, 10, pair.key};
    if (wrong == 3) {
      uint32_t plain = *pair.link.far_device.memory().add(
          pair.link.far_memory, 0x5000000, kPairArea, Connection::kPd, kLocalWrite | kRemoteWrite);
      bind.sges = Sge{0x5000000, 10, plain};
    }
    if (wrong == 4) bind.sges = Sge{pair.link.far_address, 0, pair.link.far_key};
    if (wrong == 5) {  // zero based, of type 1
      bind.rkey = *pair.link.far_device.memory().add_window(Connection::kPd, WindowType::kType1);
      bind.bind_access = kRemoteRead | kZeroBased;
    }
    CHECK(pair.far_outcome(bind) == WcStatus::kWindowBindError);
    CHECK(pair.link.far->state() == QpState::kError);
  }
}

TEST_CASE("window: resetting a queue pair releases the windows that it has bound") {
  Windowed pair;
  CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
  REQUIRE(pair.link.far->modify(QpState::kReset));
  CHECK(pair.link.far_device.memory().find(pair.key) == nullptr);
  CHECK(pair.link.far_device.memory().remove(pair.link.far_key));
}

TEST_CASE(
    "window: a type 1 window belongs to its domain, can be rebound, and is unbound by length 0") {
  Windowed pair;
  MemoryTable& table = pair.link.far_device.memory();
  pair.key = *table.add_window(Connection::kPd, WindowType::kType1);
  CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
  CHECK(table.allow(pair.key, Connection::kPd, 0x123456, kRemoteWrite, pair.link.far_address + 1000,
                    1000) != nullptr);
  CHECK_FALSE(table.invalidate(pair.key, pair.link.far->number()));
  SendRequest again = pair.bind(2);
  again.sges = Sge{pair.link.far_address, 500, pair.link.far_key};
  CHECK(pair.far_outcome(again) == WcStatus::kSuccess);
  CHECK(pair.write(0, 500) == WcStatus::kSuccess);
  again.sges = Sge{0, 0, 0};
  CHECK(pair.far_outcome(again) == WcStatus::kSuccess);
  CHECK(table.find(pair.key) == nullptr);
  CHECK(table.remove(pair.link.far_key));  // no window is bound to it
}

TEST_CASE("window: a zero based window is named by offsets, and ends where it ends") {
  Windowed pair;
  pair.access |= kZeroBased;
  CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
  SendRequest write = pair.link.write(1, 1000, 1000);
  write.rkey = pair.key;
  write.remote_address = 0;
  CHECK(pair.outcome(write) == WcStatus::kSuccess);
  CHECK(pair.same(1000, 1000, 1000));
  write.remote_address = 1;
  CHECK(pair.outcome(write) == WcStatus::kRemoteAccessError);
}

TEST_CASE("region: the addresses of a zero based region are offsets, near and far") {
  Pair pair;
  MemoryTable& near = pair.link.near_device.memory();
  MemoryTable& far = pair.link.far_device.memory();
  constexpr uint8_t kAccess = kLocalWrite | kRemoteWrite | kWindowBind | kZeroBased;
  uint32_t from = *near.add(pair.link.near_memory, ~uint64_t{0}, 4096, Connection::kPd, kZeroBased);
  uint32_t to = *far.add(pair.link.far_memory, 0x5000000, 4096, Connection::kPd, kAccess);
  SendRequest write = pair.link.write(1, 0, 500);
  write.sges = Sge{100, 500, from};
  write.remote_address = 3596;
  write.rkey = to;
  CHECK(pair.outcome(write) == WcStatus::kSuccess);
  CHECK(pair.same(100, 3596, 500));
  CHECK(far.change(to, Connection::kPd, kLocalWrite).error().code == EINVAL);
  CHECK(far.change(to, Connection::kPd, kLocalWrite | kZeroBased));
  CHECK(far.find(to)->access == (kLocalWrite | kZeroBased));
}
