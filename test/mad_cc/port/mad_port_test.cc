#include "mad_cc/port/mad_port.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "test/mad_cc/port/mad_rig.h"

using namespace rocefs;
using namespace rocefs::mad;

TEST_CASE("port: an answer is matched once, by its TID, class and response bit") {
  MadRig rig;
  uint32_t agent = rig.agent();
  REQUIRE(rig.send(agent, 5, a_mad(kSubnAdm, kGetTable, 0x1234)) == 0);
  REQUIRE(rig.transmitted.size() == 1);
  CHECK(rig.transmitted[0].to == rig.peer);
  CHECK(rig.last().tid() == (uint64_t{MadPort::high_tid(agent)} << 32 | 0x1234));
  Mad request = rig.last();

  Mad other_tid = answer_to(request);
  other_tid.set_tid(request.tid() + 1);
  rig.receive(other_tid);
  Mad other_class = answer_to(request);
  other_class.bytes[1] = kDeviceMgt;
  rig.receive(other_class);
  rig.receive(request);  // what loops back is no answer
  CHECK(rig.news() == "");
  rig.receive(answer_to(request));
  rig.receive(answer_to(request));
  CHECK(rig.news() == "0: 1 5 256 octets from 7; ");
  rig.pass(kSecond);
  CHECK(rig.news() == "");
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("port: a request is transmitted retries + 1 times, each with its time-out") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  REQUIRE(rig.send(agent, 1, a_mad(kPerf, kGet, 1), 50, 2) == 0);
  rig.pass(kSecond);
  CHECK(rig.news() == "150: 1 1 timed out; ");
  REQUIRE(rig.transmitted.size() == 3);
  CHECK(rig.transmitted[1].at == 50 * kMillisecond);
  CHECK(rig.transmitted[2].at == 100 * kMillisecond);
  CHECK(rig.transmitted[0].mad == rig.transmitted[2].mad);
  rig.receive(answer_to(rig.last()));
  CHECK(rig.news() == "");
}

TEST_CASE("port: the longest time-out and the most retries do not overflow") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  REQUIRE(rig.send(agent, 1, a_mad(kPerf, kGet, 1), UINT32_MAX, UINT32_MAX) == 0);
  CHECK(rig.scheduler.next() == TimeNs{UINT32_MAX} * kMillisecond);
  rig.pass(TimeNs{UINT32_MAX} * kMillisecond * 3);
  CHECK(rig.transmitted.size() == 4);
  CHECK(rig.news() == "");
}

TEST_CASE("port: a MAD that expects no answer is sent at once, and completes later") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  REQUIRE(rig.send(agent, 1, a_mad(kPerf, kGetResp, 1), 0, 3) == 0);
  CHECK(rig.transmitted.size() == 1);
  CHECK(rig.last().tid() == 1);  // a response has the TID of whose request it answers
  CHECK(rig.news() == "");
  rig.pass(0);
  CHECK(rig.news() == "0: 1 1 sent; ");
}

TEST_CASE("port: a cancelled request is flushed asynchronously, and its late answer is ignored") {
  MadRig rig;
  uint32_t agent = rig.agent();
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGet, 1)) == 0);
  rig.port.cancel(agent, 2);
  rig.port.cancel(agent, 1);
  rig.port.cancel(agent, 1);
  CHECK(rig.news() == "");
  rig.receive(answer_to(rig.last()));
  rig.pass(kSecond);
  CHECK(rig.news() == "0: 1 1 flushed; ");
  CHECK(rig.port.limiter().counters().outstanding.get() == 0);
}

TEST_CASE("port: SA requests pass the limiter: sent in turn, refused or expired") {
  MadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 1, 2, 20});
  uint32_t agent = rig.agent();
  for (uint64_t i = 1; i <= 3; ++i) CHECK(rig.send(agent, i, a_mad(kSubnAdm, kGet, i), 100) == 0);
  CHECK(rig.send(agent, 4, a_mad(kSubnAdm, kGet, 4), 100) == EBUSY);
  CHECK(rig.send(agent, 5, a_mad(kSubnAdm, kGetTable, 5), 100) == 0);  // not limited
  const LimiterCounters& counters = rig.port.limiter().counters();
  CHECK(counters.drops.get() == 1);
  CHECK(counters.outstanding.get() == 1);
  CHECK(counters.queued.get() == 2);
  CHECK(rig.transmitted.size() == 2);
  CHECK(rig.port.sends_under_way() == 4);

  rig.pass(10 * kMillisecond);
  rig.receive(answer_to(rig.transmitted[0].mad));
  CHECK(rig.news() == "10: 1 1 256 octets from 7; ");
  REQUIRE(rig.transmitted.size() == 3);
  CHECK((rig.last().tid() & 0xffffffff) == 2);
  rig.pass(kSecond);
  CHECK(rig.news() == "20: 1 3 expired; 100: 1 5 timed out; 110: 1 2 timed out; ");
  CHECK(counters.expired.get() == 1);
  CHECK(counters.outstanding.get() == 0);
  CHECK(counters.queued.get() == 0);
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("port: a retried request keeps its place among the outstanding ones until it ends") {
  MadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 1, 16, 10000});
  uint32_t agent = rig.agent();
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGet, 1), 10, 3) == 0);
  REQUIRE(rig.send(agent, 2, a_mad(kSubnAdm, kSet, 2), 10, 0) == 0);
  rig.pass(39 * kMillisecond);
  CHECK(rig.transmitted.size() == 4);
  rig.pass(kMillisecond);
  CHECK(rig.news() == "40: 1 1 timed out; ");
  CHECK(rig.transmitted.size() == 5);
  rig.port.remove_agent(agent);
  CHECK(rig.port.limiter().counters().outstanding.get() == 0);
  rig.pass(kSecond);
  CHECK(rig.news() == "");
}

TEST_CASE("port: ofed25 uses its own time-out for answers") {
  MadRig rig;
  rig.port.configure_limiter({MadSemantics::kOfed25, 16, 16, 30});
  uint32_t agent = rig.agent();
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGet, 1), 1000, 2) == 0);
  rig.pass(kSecond);
  CHECK(rig.news() == "30: 1 1 timed out; ");
  CHECK(rig.transmitted.size() == 3);
}

TEST_CASE("port: removing an agent discards its queued requests") {
  MadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 2, 16, 10000});
  uint32_t agent = rig.agent();
  for (uint64_t i = 1; i <= 10; ++i) REQUIRE(rig.send(agent, i, a_mad(kSubnAdm, kGet, i)) == 0);
  rig.port.remove_agent(agent);
  rig.pass(kSecond);
  CHECK(rig.transmitted.size() == 2);
  CHECK(rig.port.limiter().counters().sent.get() == 2);
  CHECK(rig.port.limiter().counters().outstanding.get() == 0);
  CHECK(rig.port.limiter().counters().queued.get() == 0);
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("port: a port that leaves flushes all requests, and accepts agents when it is back") {
  MadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 1, 16, 20});
  uint32_t agent = rig.agent();
  for (uint64_t i = 1; i <= 3; ++i) REQUIRE(rig.send(agent, i, a_mad(kSubnAdm, kGet, i)) == 0);
  std::vector<int> tries;
  rig.then = [&](uint32_t id) { tries.push_back(rig.send(id, 9, a_mad(kSubnAdm, kGet, 9))); };
  rig.port.leave();
  CHECK(rig.news() == "0: 1 1 flushed; 0: 1 2 flushed; 0: 1 3 flushed; ");
  CHECK(tries == std::vector<int>{ENODEV, ENODEV, ENODEV});
  CHECK(rig.port.add_agent(MadRig::registration(kSubnAdm), rig).error().code == ENODEV);
  rig.receive(answer_to(rig.last()));
  rig.pass(kSecond);
  CHECK(rig.news() == "");
  CHECK(rig.port.limiter().counters().outstanding.get() == 0);
  rig.port.arrive();
  CHECK(rig.send(agent, 1, a_mad(kSubnAdm, kGet, 1)) == EINVAL);
  CHECK(rig.agent() != agent);
}

TEST_CASE("port: an end that was decided before the port leaves is still reported") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  REQUIRE(rig.send(agent, 1, a_mad(kPerf, kGet, 1), 0) == 0);
  REQUIRE(rig.send(agent, 2, a_mad(kPerf, kGet, 2)) == 0);
  rig.port.leave();
  CHECK(rig.news() == "0: 1 1 sent; 0: 1 2 flushed; ");
  rig.pass(kSecond);
  CHECK(rig.news() == "");
}

TEST_CASE("port: a sender that sends again in each callback leaves others their turn") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  int sends = 0;
  rig.then = [&](uint32_t id) { CHECK(rig.send(id, 1, a_mad(kPerf, kGet, ++sends), 0) == 0); };
  REQUIRE(rig.send(agent, 1, a_mad(kPerf, kGet), 0) == 0);
  for (int turn = 1; turn <= 10; ++turn) {
    REQUIRE(rig.scheduler.run_one(0));
    CHECK(sends == turn);
  }
}

TEST_CASE("port: a user may remove its agent and send from within a callback") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf), other = rig.agent(kPerf);
  for (uint64_t i = 1; i <= 3; ++i) REQUIRE(rig.send(agent, i, a_mad(kPerf, kGet, i), 10) == 0);
  rig.then = [&](uint32_t id) {
    rig.port.remove_agent(id);
    if (id == agent) CHECK(rig.send(other, 1, a_mad(kPerf, kGet, 1), 20) == 0);
  };
  SECTION("a time-out") {
    rig.pass(kSecond);
    CHECK(rig.news() == "10: 1 1 timed out; 30: 2 1 timed out; ");
  }
  SECTION("an answer") {
    rig.receive(answer_to(rig.last()));
    rig.pass(kSecond);
    CHECK(rig.news() == "0: 1 3 256 octets from 7; 20: 2 1 timed out; ");
  }
  SECTION("the port goes") {
    rig.then = [&](uint32_t id) { rig.port.remove_agent(id); };
    rig.port.leave();
    CHECK(rig.news() == "0: 1 1 flushed; ");
  }
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("port: a request goes to the agent registered for its class, version and method") {
  MadRig rig;
  rig.agent(kDeviceMgt, 0, {kGet, kSet});
  rig.agent(kDeviceMgt, 0, {kSend});
  rig.receive(a_mad(kDeviceMgt, kGet, 1));
  rig.receive(a_mad(kDeviceMgt, kSend, 1));
  rig.receive(a_mad(kDeviceMgt, kTrap, 1));
  Mad other_version = a_mad(kDeviceMgt, kGet, 1);
  other_version.bytes[2] = 2;
  rig.receive(other_version);
  Mad other_base = a_mad(kDeviceMgt, kGet, 1);
  other_base.bytes[0] = 2;
  rig.receive(other_base);
  CHECK(rig.news() == "0: 1 - 256 octets from 7; 0: 2 - 256 octets from 7; ");

  MadRegistration vendor = MadRig::registration(0x30, 0, {kGet});
  vendor.oui = 0x001405;
  uint32_t id = *rig.port.add_agent(vendor, rig);
  vendor.oui = 0x001406;
  REQUIRE(rig.port.add_agent(vendor, rig));
  Mad mad = a_mad(0x30, kGet, 1);
  rig.receive(mad);
  mad.bytes[38] = 0x14;
  mad.bytes[39] = 0x05;
  rig.receive(mad);
  CHECK(rig.news() == fmt::format("0: {} - 256 octets from 7; ", id));
}

TEST_CASE("port: agents are registered as by ib_register_mad_agent()") {
  MadRig rig;
  auto code = [&](auto change) {
    MadRegistration registration = MadRig::registration(kSubnAdm, 1, {kGet});
    change(registration);
    Result<uint32_t> added = rig.port.add_agent(registration, rig);
    if (!added) return added.error().code;
    rig.port.remove_agent(*added);
    return 0;
  };
  using R = MadRegistration;
  CHECK(code([](R&) {}) == 0);
  CHECK(code([](R& r) { r.qpn = 0; }) == EINVAL);
  CHECK(code([](R& r) { r.qpn = 2; }) == EINVAL);
  CHECK(code([](R& r) { r.rmpp_version = 2; }) == EINVAL);
  CHECK(code([](R& r) { r.class_version = 0x83; }) == EINVAL);
  CHECK(code([](R& r) { r.mgmt_class = kPerf; }) == EINVAL);  // it has no RMPP
  CHECK(code([](R& r) { r = MadRig::registration(0x50); }) == EINVAL);
  CHECK(code([](R& r) { r = MadRig::registration(0x30, 1); }) == EINVAL);  // no OUI
  CHECK(code([](R& r) { r = MadRig::registration(0x30, 1), r.oui = 1; }) == 0);
  CHECK(code([](R& r) { r = MadRig::registration(0x30, 1), r.oui = 1 << 24; }) == EINVAL);
  CHECK(code([](R& r) { r = MadRig::registration(kSubnLid); }) == 0);
  CHECK(code([](R& r) { r = MadRig::registration(kSubnDirected); }) == 0);
  CHECK(code([](R& r) { r = MadRig::registration(kSubnDirected), r.qpn = 1; }) == EINVAL);
  CHECK(code([](R& r) { r = MadRegistration{}; }) == 0);
  CHECK(code([](R& r) { r = MadRegistration{}, r.methods.set(1); }) == EINVAL);
  CHECK(code([](R& r) { r = MadRegistration{}, r.user_rmpp = true; }) == EINVAL);

  uint32_t first = rig.agent(kPerf, 0, {kGet, kSet});
  CHECK(code([](R& r) { r = MadRig::registration(kPerf, 0, {kSet}); }) == EBUSY);
  CHECK(code([](R& r) { r = MadRig::registration(kPerf, 0, {kTrap}); }) == 0);
  CHECK(code([](R& r) { r = MadRig::registration(kPerf, 0, {kSet}), ++r.class_version; }) == 0);
  rig.port.remove_agent(first);
  CHECK(code([](R& r) { r = MadRig::registration(kPerf, 0, {kSet}); }) == 0);
}

TEST_CASE("port: an invalid send is EINVAL") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1), plain = rig.agent(kPerf);
  CHECK(rig.send(99, 1, a_mad(kSubnAdm, kGet)) == EINVAL);
  CHECK(rig.send(agent, 1, a_mad(kPerf, kGet)) == EINVAL);  // a class without RMPP
  CHECK(rig.send(plain, 1, Message(23, 1)) == EINVAL);
  CHECK(rig.send(plain, 1, Message(257, 1)) == EINVAL);
  CHECK(rig.send(agent, 1, Message(257, kSubnAdm)) == EINVAL);  // RMPP is not active
  CHECK(rig.transmitted.empty());
}

TEST_CASE("port: the number of an agent's sends under way is limited, even with one TID") {
  MadRig rig;
  MadRegistration registration = MadRig::registration(kPerf);
  registration.max_sends = 1000;
  uint32_t agent = *rig.port.add_agent(registration, rig);
  for (uint64_t i = 0; i < 1000; ++i) REQUIRE(rig.send(agent, i, a_mad(kPerf, kGet, 7)) == 0);
  CHECK(rig.send(agent, 1000, a_mad(kPerf, kGet, 7)) == ENOMEM);
  CHECK(rig.send(rig.agent(kPerf), 0, a_mad(kPerf, kGet, 7)) == 0);
  rig.receive(answer_to(rig.transmitted[0].mad));
  CHECK(rig.news() == "0: 1 0 256 octets from 7; ");  // the first that was sent
  CHECK(rig.send(agent, 1, a_mad(kPerf, kGet, 7)) == EINVAL);
  CHECK(rig.send(agent, 0, a_mad(kPerf, kGet, 7)) == 0);
  rig.pass(kSecond);
  CHECK(rig.heard.size() == 1001);
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("port: 100,000 requests at once are handled, half of them answered") {
  MadRig rig;
  constexpr uint64_t kCount = 100'000;
  rig.port.configure_limiter({MadSemantics::kDoc, 1000, kCount, 10000});
  MadRegistration registration = MadRig::registration(kSubnAdm);
  registration.max_sends = kCount;
  uint32_t agent = *rig.port.add_agent(registration, rig);
  Mad request = a_mad(kSubnAdm, kGet);
  for (uint64_t i = 0; i < kCount; ++i) {
    request.set_tid(i);
    REQUIRE(rig.send(agent, i, request, 50) == 0);
  }
  CHECK(rig.transmitted.size() == 1000);
  for (size_t i = 0; i < rig.transmitted.size(); ++i) {
    rig.heard.clear();
    if (i % 2 == 0) rig.receive(answer_to(rig.transmitted[i].mad));
    if (i + 1 == rig.transmitted.size()) rig.pass(50 * kMillisecond);
  }
  CHECK(rig.transmitted.size() == kCount);
  CHECK(rig.messages.size() == kCount / 2);
  CHECK(rig.port.sends_under_way() == 0);
  CHECK(rig.port.limiter().counters().sent.get() == kCount);
}

TEST_CASE("port: work that is due at one instant is split into short events") {
  constexpr uint64_t kSlice = 1024, kCount = 5 * kSlice + 10;
  MadRig rig;
  uint32_t retries = GENERATE(0u, 1u);
  bool limited = GENERATE(false, true);
  uint32_t agent = rig.agent();
  SaLimiter::Settings settings{MadSemantics::kDoc, kCount / 2, kCount / 2, 100};
  if (!limited) settings.max_outstanding = 0;
  rig.port.configure_limiter(settings);
  for (uint64_t i = 0; i < kCount; ++i)
    REQUIRE(rig.send(agent, i, a_mad(kSubnAdm, kGet, i), 100, retries) == 0);
  const TimeNs end = (1 + retries) * 100 * kMillisecond;
  size_t events = 0;
  for (;; ++events) {
    size_t heard = rig.heard.size(), transmitted = rig.transmitted.size();
    if (!rig.scheduler.run_one(end)) break;
    CHECK(rig.heard.size() - heard <= kSlice);
    CHECK(rig.transmitted.size() - transmitted <= kSlice);
  }
  CHECK(events >= 11);
  REQUIRE(rig.heard.size() == kCount);
  std::vector<std::string> expected;
  for (uint64_t i = 0; i < kCount; ++i) {
    uint64_t request = limited ? (i + kCount / 2) % kCount : i;
    bool expires = limited && request >= kCount / 2;
    expected.push_back(fmt::format("{}: {} {} {}", expires ? 100 : 100 * (1 + retries), agent,
                                   request, expires ? "expired" : "timed out"));
  }
  CHECK(rig.heard == expected);
  CHECK(rig.port.sends_under_way() == 0);
  CHECK(rig.scheduler.next() == kNever);
}

TEST_CASE("port: an answer that arrives during sliced time-outs comes after them") {
  MadRig rig;
  uint32_t agent = rig.agent();
  rig.port.configure_limiter({MadSemantics::kOfed25, 0, 16, 0});
  uint32_t retries = GENERATE(0u, 1u);
  for (uint64_t i = 0; i < 2000; ++i)
    REQUIRE(rig.send(agent, i, a_mad(kSubnAdm, kGet, i), 100, retries) == 0);
  Mad last = rig.last();
  REQUIRE(rig.transmitted.size() == 2000);
  REQUIRE(rig.scheduler.run_one(kSecond));
  rig.receive(answer_to(last));
  rig.pass(0);
  bool again = retries == 1;
  CHECK(rig.transmitted.size() == (again ? 4000 : 2000));
  CHECK(rig.heard.size() == (again ? 1 : 2000));
  std::string what = again ? "100: 1 1999 256 octets from 7" : "100: 1 1999 timed out";
  CHECK(std::find(rig.heard.begin(), rig.heard.end(), what) != rig.heard.end());
}

TEST_CASE("port: a MAD to the wrong queue pair is lost") {
  MadRig rig;
  uint32_t agent = rig.agent(kPerf);
  Address to = rig.peer;
  to.qpn = 0;
  REQUIRE(rig.port.send(agent, MadSend{1, to, 10, 0, message_of(a_mad(kPerf, kGet))}));
  to.qpn = 1;
  REQUIRE(rig.port.send(agent, MadSend{2, to, 10, 0, message_of(a_mad(kSubnLid, kGet))}));
  rig.pass(kSecond);
  CHECK(rig.transmitted.empty());
  CHECK(rig.news() == "10: 1 1 timed out; 10: 1 2 timed out; ");
}

TEST_CASE("port: a Get or Set that no agent wants is refused, other MADs are dropped (13.4.7)") {
  MadRig rig;
  rig.agent(kPerf, 0, {kGet});
  rig.receive(a_mad(kPerf, kSet, 9));
  REQUIRE(rig.transmitted.size() == 1);
  CHECK(rig.last().status() == kBadMethodAttribute);
  CHECK(rig.last().method() == kGetResp);
  CHECK(rig.last().tid() == 9);
  Mad wrong = a_mad(kPerf, kSet);
  wrong.bytes[0] = 2;  // base version
  rig.receive(wrong);
  for (uint8_t method : {kSend, kTrap, kGetResp, kGetTable}) rig.receive(a_mad(kPerf, method));
  CHECK(rig.transmitted.size() == 1);
}
