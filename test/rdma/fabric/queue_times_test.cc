// How long egress queues are, over time.
#include <catch2/catch.hpp>

#include "test/rdma/star.h"

namespace rocefs::test {

TEST_CASE("queue times: octets are weighted by the time for which the queue had them") {
  Star star(2);
  QueueTimes measured;
  star.hub.measure_queues(measured, star.scheduler.now());
  star.pause(2, 3);
  const TimeNs begin = star.scheduler.now();
  REQUIRE(begin < 10'000);
  star.scheduler.run_until(10'000);
  star.arrive(1, 2, {3});  // empty for 10 us
  star.scheduler.run_until(40'000);
  star.arrive(1, 2, {3});  // one packet for 30 us
  star.arrive(1, 2, {3});  // two for no time
  star.scheduler.run_until(100'000);
  star.hub.note_queues(star.scheduler.now());  // three for 60 us
  const OctetTimes* times = star.queue(2, 3).times;
  REQUIRE(times);
  CHECK(times->count() == 100'000);
  CHECK(times->max() == 3 * kFullPacket);
  CHECK(times->mean() == Approx(0.3 * kFullPacket + 0.6 * 3 * kFullPacket));
  CHECK(times->quantile(0.1) == 0);
  CHECK(static_cast<double>(times->quantile(0.11)) == Approx(kFullPacket).epsilon(1.0 / 64));
  CHECK(static_cast<double>(times->quantile(0.4)) == Approx(kFullPacket).epsilon(1.0 / 64));
  CHECK(static_cast<double>(times->quantile(0.41)) == Approx(3 * kFullPacket).epsilon(1.0 / 64));
  CHECK(star.queue(2, 0).times == nullptr);
  CHECK(star.queue(1, 3).times == nullptr);
}

TEST_CASE("queue times: a packet leaves the queue when its transmission begins") {
  Star star(2);
  QueueTimes measured;
  star.hub.measure_queues(measured, star.scheduler.now());
  star.scheduler.run_until(50'000);
  star.arrive(1, 2, {0});
  star.arrive(1, 2, {0});
  REQUIRE(star.run_idle());
  star.scheduler.run_until(100'000);
  star.hub.note_queues(star.scheduler.now());
  const OctetTimes* times = star.queue(2, 0).times;
  REQUIRE(times);
  // The second waits for the transmission of the first.
  auto wire_ns = static_cast<double>(star.link("s-h2").serialization_ns(kFullPacket));
  CHECK(times->mean() * 100'000 ==
        Approx(static_cast<double>(kFullPacket) * wire_ns).epsilon(1e-3));
  CHECK(times->quantile(0.95) == 0);
  CHECK(times->max() == 2 * kFullPacket);
}

TEST_CASE("queue times: a reset empties the queue, and the time before it stays") {
  Star star(2);
  QueueTimes measured;
  star.hub.measure_queues(measured, star.scheduler.now());
  star.pause(2, 3);
  star.scheduler.run_until(10'000);
  star.arrive(1, 2, {3});
  star.scheduler.run_until(40'000);
  star.fabric.reset();
  star.scheduler.run_until(50'000);
  star.hub.note_queues(star.scheduler.now());
  const OctetTimes* times = star.queue(2, 3).times;
  REQUIRE(times);
  CHECK(times->mean() == Approx(0.6 * kFullPacket));
}

TEST_CASE("queue times: a switch does not measure unless it is told to") {
  Star star(2);
  star.arrive(1, 2, {0});
  REQUIRE(star.run_idle());
  star.hub.note_queues(star.scheduler.now());
  CHECK(star.queue(2, 0).times == nullptr);
}

}  // namespace rocefs::test
