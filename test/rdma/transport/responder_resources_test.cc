// READs and atomics that a responder keeps to answer duplicates: up to max_dest_rd_atomic, with
// memory for those that have come.
#include <catch2/catch.hpp>
#include <vector>

#include "test/rdma/transport/lone.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

QpAttributes deepest() {
  QpAttributes attributes;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = kMaxRdAtomic;
  return attributes;
}

// A READ of eight octets, answered; returns a copy of its request.
PacketPtr read_eight(Lone& lone) {
  REQUIRE(lone.near.qp.post(lone.eight(SendOp::kRead, 0)));
  PacketPtr request = lone.near.data(), copy = copy_of(*request);
  lone.request(std::move(request));
  lone.take(lone.far.data());
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
  return copy;
}

}  // namespace

TEST_CASE("responder resources: memory for READs follows those that come, not what may come") {
  Lone lone(deepest());
  CHECK(lone.far.qp.responder().kept_requests() == 0);
  for (int i = 0; i < 3; ++i) read_eight(lone);
  CHECK(lone.far.qp.responder().kept_requests() <= 4);  // doubled as they come
  for (int i = 0; i < 2 * kMaxRdAtomic; ++i) read_eight(lone);
  CHECK(lone.far.qp.responder().kept_requests() == kMaxRdAtomic);
}

TEST_CASE("responder resources: the newest max_dest_rd_atomic READs are answered again") {
  Lone lone(deepest());
  constexpr size_t kReads = kMaxRdAtomic + 5;
  std::vector<PacketPtr> requests;
  for (size_t i = 0; i < kReads; ++i) requests.push_back(read_eight(lone));
  for (size_t i = 0; i < kReads; ++i) {
    INFO("READ " << i);
    lone.request(std::move(requests[i]));
    PacketPtr again = lone.far.data();
    CHECK(bool(again) == (i >= 5));
  }
}

TEST_CASE("responder resources: max_dest_rd_atomic READs may be under way, and no more") {
  Lone lone(deepest());
  for (int i = 0; i < kMaxRdAtomic; ++i) {
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kRead, 0)));
    PacketPtr request = lone.near.data();
    REQUIRE(request);
    lone.request(std::move(request));
  }
  CHECK(lone.far.qp.state() == QpState::kRts);
  while (PacketPtr response = lone.far.data()) lone.take(std::move(response));
  CHECK(lone.near.completions() == std::vector<WcStatus>(kMaxRdAtomic, WcStatus::kSuccess));
}
