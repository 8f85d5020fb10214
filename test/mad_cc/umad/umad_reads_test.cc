// Reads of umad files: waiting readers, kept messages, and ends.
#include "mad_cc/umad/umad_file.h"
#include "test/mad_cc/umad/umad_rig.h"

using namespace rocefs;
using namespace rocefs::mad;

namespace {

// Builds one segment of a table of the SA, in answer to `request`.
Mad segment_of(const Mad& request, uint32_t number, uint32_t count) {
  Mad mad = answer_to(request);
  uint8_t flags = kRmppActive;
  if (number == 1) flags |= kRmppFirst;
  if (number == count) flags |= kRmppLast;
  uint32_t length = number == 1 ? count * 220 : number == count ? 220 : 0;
  mad.set_rmpp(kRmppData, flags, 0, number, length);
  std::fill(mad.bytes.begin() + 56, mad.bytes.end(), static_cast<uint8_t>(number));
  return mad;
}

// Asks for a table, which arrives in that many segments.
void fetch_table(UmadRig& rig, Program& program, uint32_t segments, uint64_t tid = 1) {
  REQUIRE(program.send(a_mad(kSubnAdm, kGetTable, tid)) == 0);
  Mad request = rig.transmitted.back();
  for (uint32_t i = 1; i <= segments; ++i) rig.receive(segment_of(request, i, segments));
}

// Message that goes by RMPP.
Message long_message(uint64_t tid, size_t octets) {
  Mad mad = a_mad(kSubnAdm, kGetMulti, tid);
  mad.set_rmpp(kRmppData, kRmppActive, 0, 0, 0);
  Message message = message_of(mad);
  message.resize(octets, 7);
  return message;
}

// Sends long messages to an unused LID until one is refused. Returns how many were accepted, and
// the errno.
std::pair<size_t, long> send_long(Program& program, size_t octets) {
  umad::Header header = Program::header(0, UINT32_MAX);
  header.retries = UINT32_MAX;
  for (size_t sent = 0;; ++sent) {
    long said = program.send(long_message(sent, octets), header);
    if (said != 0) return {sent, said};
  }
}

}  // namespace

TEST_CASE("umad: a read before an agent is registered returns nothing at once") {
  UmadRig rig;
  Program program(rig);
  CHECK(program.read(1 << 20, false) == 0);
  CHECK(program.read(55, false) == -EINVAL);
  CHECK(program.poll() == (POLLOUT | POLLWRNORM));
  REQUIRE(program.agent() == 0);
  CHECK(program.read(1 << 20, false) == -EINPROGRESS);
}

TEST_CASE("umad: a waiting read gets the next message, and a poll is woken") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf, 0, {kGet}) == 0);
  int woken = 0;
  CHECK(program.poll(woken) == (POLLOUT | POLLWRNORM));
  rig.receive(a_mad(kPerf, kGet, 1));
  CHECK(woken == 1);
  CHECK(program.poll() == (POLLOUT | POLLWRNORM | POLLIN | POLLRDNORM));
  CHECK(program.read(56 + 255) == -EINVAL);
  CHECK(program.read(56 + 256) == 56 + 256);
  CHECK(program.poll(woken) == (POLLOUT | POLLWRNORM));
  CHECK(program.read(1 << 20, false) == -EINPROGRESS);
  rig.receive(a_mad(kPerf, kGet, 2));
  CHECK(program.result == 56 + 256);
  CHECK(first_mad(program.message).tid() == 2);
  CHECK(woken == 1);  // there was nothing left to read
}

TEST_CASE("umad: so many reads of an open file wait, and any of them may be interrupted") {
  constexpr size_t kMost = 4096;
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf, 0, {kGet}) == 0);
  std::vector<OperationPtr> waiting;
  for (size_t i = 0; i < kMost; ++i) {
    REQUIRE(program.read(1 << 20, false) == -EINPROGRESS);
    waiting.push_back(program.reading);
  }
  CHECK(program.read(1 << 20, false) == -ENOMEM);
  for (size_t i = kMost - 1; i > 0; --i) waiting[i]->interrupt();
  rig.receive(a_mad(kPerf, kGet, 1));
  CHECK(program.result == 56 + 256);  // the first read's
  waiting[0]->interrupt();            // late
  CHECK(program.read(1 << 20, false) == -EINPROGRESS);
  program.reading->interrupt();
  rig.receive(a_mad(kPerf, kGet, 2));
  CHECK(program.read() == 56 + 256);
}

TEST_CASE("umad: an interrupted read takes no message") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf, 0, {kGet}) == 0);
  CHECK(program.read(1 << 20, false) == -EINPROGRESS);
  REQUIRE(program.reading->interruptible());
  program.reading->interrupt();
  rig.receive(a_mad(kPerf, kGet, 1));
  CHECK(program.result == -EINPROGRESS);
  CHECK(program.read() == 56 + 256);
}

TEST_CASE("umad: an answer in segments is one message, with the length of its data") {
  UmadRig rig;
  Program program(rig);
  program.enable_pkey();
  program.header_size = umad::kHeaderSize;
  REQUIRE(program.agent(kSubnAdm, 1) == 0);
  fetch_table(rig, program, 3);
  CHECK(program.read(64 + 255) == -EINVAL);  // not even a segment
  long length = 64 + 56 + 3 * 200;
  CHECK(program.read(64 + 256) == -ENOSPC);  // nobody knows this reader's memory
  CHECK(program.read(static_cast<size_t>(length) - 1) == -ENOSPC);
  REQUIRE(rig.log.size() == 1);  // told once
  CHECK(rig.log[0].find("cannot be told that an answer has 720 octets") != std::string::npos);
  CHECK(program.poll() == (POLLOUT | POLLWRNORM | POLLIN | POLLRDNORM));
  CHECK(program.read(static_cast<size_t>(length)) == length);
  CHECK(program.header_got.length == length);
  CHECK(program.message[56] == 1);
  CHECK(program.message[56 + 600 - 1] == 3);
  CHECK(program.read() == -EAGAIN);
}

TEST_CASE("umad: a long request is sent by RMPP if the agent has it") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kSubnAdm, 1) == 0);
  REQUIRE(program.agent(kSubnAdm, 0) == 1);
  Mad request = a_mad(kSubnAdm, kGetMulti, 5);
  request.set_rmpp(kRmppData, kRmppActive, 0, 0, 0);
  Message message = message_of(request);
  message.resize(1000, 7);
  CHECK(program.send(message, Program::header(1)) == -EINVAL);
  CHECK(program.send(message, Program::header(0)) == 0);
  REQUIRE(rig.transmitted.size() == 1);
  CHECK(rig.transmitted[0].rmpp_segment() == 1);
  CHECK(rig.transmitted[0].rmpp_flags() == (kRmppActive | kRmppFirst));
}

TEST_CASE("umad: the RMPP header of a single MAD is cleared if the agent has RMPP") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kSubnAdm, 1) == 0);
  REQUIRE(program.agent(kSubnAdm, 0) == 1);
  Mad request = a_mad(kSubnAdm, kGet, 5);
  std::fill(request.bytes.begin() + 24, request.bytes.end(), uint8_t{0xee});
  REQUIRE(program.send(request, Program::header(1)) == 0);
  CHECK(rig.transmitted.back().bytes[24] == 0xee);
  request.bytes[26] = 0xee & ~kRmppActive;
  REQUIRE(program.send(request, Program::header(0)) == 0);
  CHECK(rig.transmitted.back().bytes[24] == 0);
  CHECK(rig.transmitted.back().bytes[35] == 0);
  CHECK(rig.transmitted.back().bytes[36] == 0xee);
}

TEST_CASE("umad: unsolicited MADs may fill half of the queue, and answers the other half") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf, 0, {kGet}) == 0);
  for (uint64_t i = 0; i < 5000; ++i) rig.receive(a_mad(kPerf, kGet, i));
  REQUIRE(rig.log.size() == 1);
  CHECK(rig.log[0].find("dropped") != std::string::npos);
  for (uint64_t i = 0; i < 2049; ++i) {
    REQUIRE(program.send(a_mad(kPerf, kSet, i)) == 0);
    rig.receive(answer_to(rig.transmitted.back()));
  }
  // No room for the last: its request ends as not answered.
  for (uint64_t i = 0; i < 2048; ++i) {
    REQUIRE(program.read() == 56 + 256);
    REQUIRE(first_mad(program.message).tid() == i);
  }
  for (uint64_t i = 0; i < 2048; ++i) {
    REQUIRE(program.read() == 56 + 256);
    REQUIRE((first_mad(program.message).tid() & 0xffffffff) == i);
  }
  CHECK(program.read() == 56 + 24);
  CHECK(program.header_got.status == ETIMEDOUT);
  CHECK(program.read() == -EAGAIN);
  rig.receive(a_mad(kPerf, kGet, 1));  // there is room again
  CHECK(program.read() == 56 + 256);
}

TEST_CASE("umad: requests whose end is not read are bounded") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf) == 0);
  for (uint64_t i = 0; i < UmadRoom::kRequests; ++i) {
    REQUIRE(program.send(a_mad(kPerf, kGet, i), Program::header(0, 1)) == 0);
    if (i % 1000 == 0) rig.pass(2 * kMillisecond);
  }
  rig.pass(2 * kMillisecond);
  CHECK(rig.port.sends_under_way() == 0);
  CHECK(program.send(a_mad(kPerf, kGet, 1 << 20)) == -ENOMEM);
  CHECK(program.read() == 56 + 24);
  CHECK(program.send(a_mad(kPerf, kGet, 1 << 20)) == 0);
  CHECK(program.send(a_mad(kPerf, kGet, 2 << 20)) == -ENOMEM);
}

TEST_CASE("umad: messages under way are limited to 16 MiB per open file, 256 MiB per port") {
  UmadRig rig;
  constexpr size_t kOctets = 64 << 10;
  const std::pair<size_t, long> full{UmadRoom::kSendOctets / kOctets, -ENOMEM};
  std::vector<std::unique_ptr<Program>> programs;
  for (size_t i = 0; i < MadPort::kMaxOctets / UmadRoom::kSendOctets; ++i) {
    programs.push_back(std::make_unique<Program>(rig));
    REQUIRE(programs.back()->agent(kSubnAdm, 1) == 0);
    REQUIRE(send_long(*programs.back(), kOctets) == full);
  }
  Program late(rig);
  REQUIRE(late.agent(kSubnAdm, 1) == 0);
  CHECK(late.send(a_mad(kSubnAdm, kGet), Program::header()) == -ENOMEM);
  // Room is freed at any end.
  uint32_t agent = 0;
  CHECK(programs[0]->ioctl(umad::kUnregisterAgent, agent) == 0);
  REQUIRE(programs[0]->agent(kSubnAdm, 1) == 0);
  CHECK(send_long(*programs[0], kOctets) == full);
  programs.pop_back();
  CHECK(send_long(late, kOctets) == full);
  rig.port.leave();
  rig.port.arrive();
  CHECK(rig.port.sends_under_way() == 0);
  REQUIRE(late.agent(kSubnAdm, 1) == 1);
  CHECK(late.send(long_message(1, kOctets), Program::header(1)) == 0);
}

TEST_CASE("umad: a user who sends as much as possible leaves room for the next one and root") {
  UmadRig rig;
  constexpr size_t kOctets = 64 << 10;
  std::vector<std::unique_ptr<Program>> programs;
  auto take_all = [&](uid_t uid) {
    size_t taken = 0;
    for (;;) {
      programs.push_back(std::make_unique<Program>(rig, uid));
      REQUIRE(programs.back()->agent(kSubnAdm, 1) == 0);
      auto [sent, said] = send_long(*programs.back(), kOctets);
      CHECK(said == -ENOMEM);
      if (sent == 0) return taken * kOctets >> 20;
      taken += sent;
    }
  };
  CHECK(take_all(1000) == 112);  // MiB: half of what is not root's
  CHECK(take_all(1001) == 56);
  CHECK(take_all(0) == 88);
  programs.erase(programs.begin());
  CHECK(take_all(0) == 16);
}

TEST_CASE("umad: a user who does not read leaves room for the next one and root") {
  auto shares = std::make_shared<UmadShares>();
  std::vector<std::pair<std::unique_ptr<UmadRoom>, Shares::Share>> kept;
  // Number of open files that together get the whole room.
  auto take_all = [&](const UmadRoom::User& user) {
    for (size_t taken = 0;; ++taken) {
      auto room = std::make_unique<UmadRoom>(shares, user);
      Shares::Share share = room->take(UmadRoom::kOctets, true);
      if (!share) return taken;
      kept.emplace_back(std::move(room), std::move(share));
    }
  };
  CHECK(take_all({1000, false}) == 7);
  CHECK(take_all({1001, false}) == 4);
  CHECK(take_all({0, true}) == 5);
  kept.clear();
  CHECK(take_all({1000, false}) == 7);
}

TEST_CASE("umad: a user has a share of the open files, and leaves some to the next one and root") {
  UmadRig rig;
  std::vector<std::unique_ptr<OpenFile>> open;
  auto take_all = [&](uid_t uid) {
    for (size_t taken = 0;; ++taken) {
      auto file = rig.file->open(rig.file, Caller{uid, 0, 1});
      if (!file) return std::tuple(taken, file.error().code, file.error().reason);
      open.push_back(std::move(*file));
    }
  };
  CHECK(take_all(1000) ==
        std::tuple(size_t{448}, EMFILE, "user 1000 has used up its share of 1024 open files"));
  CHECK(std::get<0>(take_all(1001)) == 224);
  CHECK(std::get<0>(take_all(0)) == 352);
  open.clear();
  CHECK(std::get<0>(take_all(1000)) == 448);
}

TEST_CASE("umad: an answer to a removed agent frees the place of its request") {
  UmadRig rig;
  auto room = std::make_shared<UmadRoom>(std::make_shared<UmadShares>(), UmadRoom::User{});
  UmadClient client(
      rig.port, room, [](UmadArrival) { FAIL("nobody is there to read it"); }, [] {});
  REQUIRE(client.add_agent(MadRegistration{}));
  for (size_t i = 1; i < UmadRoom::kRequests; ++i) room->take_request();
  REQUIRE(client.send({Program::header(), rig.peer, message_of(a_mad(kPerf, kGet))}));
  CHECK_FALSE(room->has_request());
  client.received(UINT32_MAX, 1, rig.peer, message_of(rig.transmitted.at(0)));
  CHECK(room->has_request());
  client.remove_agents();
}

TEST_CASE("umad: ended requests free their places, however they ended") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf) == 0);
  size_t refused = 0, read = 0;
  for (uint64_t i = 0; i < 3 * UmadRoom::kRequests + 100; ++i) {
    uint32_t timeout_ms = i % 3 == 0 ? 0 : 1000;
    refused += program.send(a_mad(kPerf, kGet, i), Program::header(0, timeout_ms)) != 0;
    if (i % 3 == 0) {
      rig.pass(0);  // it is out
    } else if (i % 3 == 1) {
      rig.receive(answer_to(rig.transmitted.back()));
      read += program.read() > 0;
    } else {
      uint32_t agent = 0;
      refused += program.ioctl(umad::kUnregisterAgent, agent) != 0;
      refused += program.agent(kPerf) != 0;
    }
    rig.transmitted.clear();
  }
  CHECK(refused == 0);
  CHECK(read == UmadRoom::kRequests + 33);
}

TEST_CASE("umad: closing a file removes its agents and their requests") {
  UmadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 2, 2, 20});
  for (int i = 0; i < 100; ++i) {
    Program program(rig);
    REQUIRE(program.agent(kPerf, 0, {kGet}) == 0);
    REQUIRE(program.agent() == 1);
    for (uint64_t tid = 0; tid < 4; ++tid)
      CHECK(program.send(a_mad(kSubnAdm, kGet, tid), Program::header(1)) == 0);
    program.read(1 << 20, false);
  }
  CHECK(rig.port.sends_under_way() == 0);
  CHECK(rig.port.limiter().counters().outstanding.get() == 0);
  CHECK(rig.port.limiter().counters().queued.get() == 0);
  rig.receive(a_mad(kPerf, kGet));
  CHECK(Program(rig).agent(kPerf, 0, {kGet}) == 0);
}

TEST_CASE("umad: a removed agent drops its requests, and others keep theirs") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent() == 0);
  REQUIRE(program.agent() == 1);
  for (uint32_t agent : {0u, 1u}) {
    REQUIRE(program.send(a_mad(kSubnAdm, kGet, 5), Program::header(agent)) == 0);
  }
  uint32_t first = 0;
  CHECK(program.ioctl(umad::kUnregisterAgent, first) == 0);
  for (const Mad& request : std::vector(rig.transmitted)) rig.receive(answer_to(request));
  rig.pass(kSecond);
  CHECK(program.read() == 56 + 256);
  CHECK(program.header_got.agent == 1);
  CHECK(program.read() == -EAGAIN);
}

TEST_CASE("umad: removing a device ends everything with ENODEV, and wakes waiting programs") {
  UmadRig rig;
  Program reads(rig), polls(rig), closed(rig);
  REQUIRE(reads.agent(kPerf, 0, {kGet}) == 0);
  REQUIRE(polls.agent(kPerf, 0, {kSet}) == 0);
  REQUIRE(polls.send(a_mad(kSubnAdm, kGet, 1)) == 0);
  rig.receive(a_mad(kPerf, kSet));
  REQUIRE(reads.read(1 << 20, false) == -EINPROGRESS);
  int woken = 0;
  polls.poll(woken);
  closed.close();
  rig.port.leave();
  rig.file->mark_removed();
  rig.run_control();
  CHECK(reads.result == -ENODEV);
  CHECK(woken == 1);
  CHECK(polls.poll() == (POLLERR | POLLHUP));
  CHECK(polls.read() == -ENODEV);
  CHECK(polls.send(a_mad(kSubnAdm, kGet, 2)) == -ENODEV);
  CHECK(polls.agent() == -ENODEV);
  CHECK(rig.port.sends_under_way() == 0);
  rig.port.arrive();
  CHECK(polls.read() == -ENODEV);
}
