#include "mad_cc/umad/umad_file.h"

#include "mad_cc/mad/rmpp.h"
#include "test/mad_cc/umad/umad_rig.h"

using namespace rocefs;
using namespace rocefs::mad;

TEST_CASE("umad: agents get the lowest free numbers, 32 at most") {
  UmadRig rig;
  Program program(rig);
  for (long i = 0; i < 32; ++i) CHECK(program.agent() == i);
  CHECK(program.agent() == -ENOMEM);
  uint32_t seven = 7, none = 32;
  CHECK(program.ioctl(umad::kUnregisterAgent, seven) == 0);
  CHECK(program.ioctl(umad::kUnregisterAgent, seven) == -EINVAL);
  CHECK(program.ioctl(umad::kUnregisterAgent, none) == -EINVAL);
  CHECK(program.agent() == 7);
  CHECK(Program(rig).agent() == 0);  // each open file has its own
}

TEST_CASE("umad: a registration that the kernel refuses is EINVAL") {
  UmadRig rig;
  Program program(rig);
  umad::Registration asked{};
  asked.qpn = 2;
  CHECK(program.ioctl(umad::kRegisterAgent, asked) == -EINVAL);
  asked = {};
  asked.mgmt_class = kSubnLid;
  asked.qpn = 1;  // SMPs are QP 0's
  CHECK(program.ioctl(umad::kRegisterAgent, asked) == -EINVAL);
  asked = {};
  asked.mgmt_class = 0x30;  // without an OUI
  asked.qpn = 1;
  CHECK(program.ioctl(umad::kRegisterAgent, asked) == -EINVAL);
  asked.oui[2] = 1;
  CHECK(program.ioctl(umad::kRegisterAgent, asked) == 0);
  asked.mgmt_class = kPerf;
  asked.rmpp_version = 1;
  CHECK(program.ioctl(umad::kRegisterAgent, asked) == -EINVAL);
  uint32_t other = 0;
  CHECK(program.ioctl(_IOWR(0x1b, 1, uint32_t), other) == -ENOTTY);
  CHECK(program.ioctl(_IO(0x1b, 9), other) == -ENOTTY);
}

TEST_CASE("umad: root and the mount's owner alone administer the fabric") {
  UmadRig rig;
  for (uint8_t smps : {uint8_t{kSubnLid}, uint8_t{kSubnDirected}}) {
    CAPTURE(int(smps));
    Program owner(rig), user(rig, 1001);
    umad::Header header = Program::header();
    header.qpn = 0;
    REQUIRE(owner.agent(smps) == 0);
    CHECK(owner.send(a_mad(smps, kSet, 1), header) == 0);
    CHECK(owner.agent(smps, 0, {kTrap}) == 1);
    owner.close();
    CHECK(user.agent(smps, 0, {kTrap}) == -EPERM);
    REQUIRE(user.agent(smps) == 0);
    size_t sent = rig.transmitted.size();
    CHECK(user.send(a_mad(smps, kSet, 2), header) == -EPERM);
    CHECK(rig.transmitted.size() == sent);
    CHECK(user.send(a_mad(smps, kGet, 3), header) == 0);
    CHECK(rig.transmitted.size() == sent + 1);
    REQUIRE(user.agent(kPerf, 0, {kGet}) == 1);
    CHECK(user.send(a_mad(kPerf, kSet, 4), Program::header(1)) == 0);
    CHECK(user.send(a_mad(smps, kSet, 5), Program::header(1)) == -EPERM);  // also by another agent
  }
}

TEST_CASE("umad: the second registration ioctl returns the known flags") {
  UmadRig rig;
  Program program(rig);
  umad::Registration2 asked{};
  asked.qpn = 1;
  asked.mgmt_class = kSubnAdm;
  asked.class_version = 2;
  asked.flags = 6;
  CHECK(program.ioctl(umad::kRegisterAgent2, asked) == -EINVAL);
  CHECK(asked.flags == umad::kUserRmpp);
  asked.agent = 99;
  CHECK(program.ioctl(umad::kRegisterAgent2, asked) == 0);
  CHECK(asked.agent == 0);
  asked.mgmt_class = 0x30;
  asked.oui = 0x1000000;
  CHECK(program.ioctl(umad::kRegisterAgent2, asked) == -EINVAL);
  asked.qpn = 257;
  CHECK(program.ioctl(umad::kRegisterAgent2, asked) == -EINVAL);
}

TEST_CASE("umad: methods are those of the mask, in both registration ioctls") {
  UmadRig rig;
  Program first(rig), second(rig);
  REQUIRE(first.agent(kPerf, 0, {kGet, kTrap, 0x7f}) == 0);
  umad::Registration2 asked{};
  asked.qpn = 1;
  asked.mgmt_class = kPerf;
  asked.class_version = 1;
  asked.methods[0] = uint64_t{1} << kTrap;
  CHECK(second.ioctl(umad::kRegisterAgent2, asked) == -EBUSY);
  asked.methods[0] = uint64_t{1} << kSet;
  asked.methods[1] = uint64_t{1} << (0x7e - 64);
  REQUIRE(second.ioctl(umad::kRegisterAgent2, asked) == 0);
  second.header_size = umad::kHeaderSize;
  for (uint8_t method : {0x01, 0x05, 0x7f}) rig.receive(a_mad(kPerf, method));
  for (uint8_t method : {0x02, 0x7e}) rig.receive(a_mad(kPerf, method));
  for (uint8_t method : {0x01, 0x05, 0x7f}) {
    CHECK(first.read() == 56 + 256);
    CHECK(first.message[3] == method);
  }
  CHECK(first.read() == -EAGAIN);
  CHECK(second.read() == 64 + 256);
  CHECK(second.read() == 64 + 256);
  CHECK(second.message[3] == 0x7e);
  CHECK(second.read() == -EAGAIN);
}

TEST_CASE("umad: P_Key indices are enabled before the first agent, or by the second ioctl") {
  UmadRig rig;
  Program old(rig), asks(rig), second(rig);
  REQUIRE(old.agent() == 0);
  CHECK(old.enable_pkey() == -EINVAL);
  CHECK(old.send(a_mad(kSubnAdm, kGet, 1)) == 0);
  CHECK(rig.to.back().pkey_index == 0);
  CHECK(asks.enable_pkey() == 0);
  CHECK(asks.enable_pkey() == 0);
  REQUIRE(asks.agent() == 0);
  asks.header_size = umad::kHeaderSize;
  umad::Header header = Program::header();
  header.pkey_index = 3;
  header.sl = 2;
  CHECK(asks.send(a_mad(kSubnAdm, kGet, 1), header) == 0);
  CHECK(rig.to.back() == Address{.lid = 7, .qpn = 1, .qkey = kQkey, .sl = 2, .pkey_index = 3});
  umad::Registration2 asked{};
  asked.qpn = 1;
  CHECK(second.ioctl(umad::kRegisterAgent2, asked) == 0);
  second.header_size = umad::kHeaderSize;
  CHECK(second.send(a_mad(kSubnAdm, kGet, 1), header) == 0);
}

TEST_CASE("umad: an answer has the request's TID below the agent's, and its source") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(kPerf) == 0);
  REQUIRE(program.agent(kSubnAdm) == 1);
  Mad request = a_mad(kSubnAdm, kGet, 0x1111'2222'3333'4444);
  REQUIRE(program.send(request, Program::header(1)) == 0);
  REQUIRE(rig.transmitted.size() == 1);
  uint64_t tid = rig.transmitted[0].tid();
  CHECK((tid & 0xffffffff) == 0x3333'4444);
  CHECK(tid >> 32 != 0x1111'2222);
  CHECK(program.read() == -EAGAIN);
  rig.peer.sl = 4;
  rig.receive(answer_to(rig.transmitted[0]));
  CHECK(program.read() == 56 + 256);
  CHECK(program.header_got.agent == 1);
  CHECK(program.header_got.status == 0);
  CHECK(program.header_got.length == 56 + 256);
  CHECK(program.header_got.lid == __builtin_bswap16(7));
  CHECK(program.header_got.qpn == __builtin_bswap32(1));
  CHECK(program.header_got.sl == 4);
  CHECK(first_mad(program.message) == answer_to(rig.transmitted[0]));
  CHECK(program.read() == -EAGAIN);
}

TEST_CASE("umad: a request that times out is read as its header, with ETIMEDOUT") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent() == 0);
  umad::Header header = Program::header(0, 50);
  header.retries = 2;
  REQUIRE(program.send(a_mad(kSubnAdm, kGet, 9), header) == 0);
  rig.pass(150 * kMillisecond - 1);
  CHECK(program.read() == -EAGAIN);
  rig.pass(1);
  CHECK(rig.transmitted.size() == 3);
  CHECK(program.read(56 + 23) == -EINVAL);
  CHECK(program.read(56 + 24) == 56 + 24);
  CHECK(program.header_got.status == ETIMEDOUT);
  CHECK(program.header_got.retries == 2);
  CHECK(program.header_got.lid == __builtin_bswap16(7));
  CHECK(
      std::equal(program.message.begin(), program.message.end(), rig.transmitted[0].bytes.begin()));
}

TEST_CASE("umad: a malformed write is EINVAL, EIO without its agent, and sends nothing") {
  UmadRig rig;
  Program program(rig);
  CHECK(program.send(a_mad(kSubnAdm, kGet)) == -EIO);  // no agent
  REQUIRE(program.agent() == 0);
  CHECK(program.write("") == -EINVAL);
  CHECK(program.write(std::string(56 + 35, '\0')) == -EINVAL);
  CHECK(program.send(a_mad(kSubnAdm, kGet), Program::header(1)) == -EIO);
  CHECK(program.send(a_mad(kSubnAdm, kGet), Program::header(31)) == -EIO);
  CHECK(program.send(a_mad(kSubnAdm, kGet), Program::header(32)) == -EINVAL);
  CHECK(program.send(a_mad(kSubnAdm, kGet), Program::header(UINT32_MAX)) == -EINVAL);
  Message request = message_of(a_mad(kSubnAdm, kGet));
  request.resize(55);  // the SA's headers have 56
  CHECK(program.send(request, Program::header()) == -EINVAL);
  request.resize(257);
  CHECK(program.send(request, Program::header()) == -EINVAL);
  request.resize(umad::kMaxWrite);
  CHECK(program.send(request, Program::header()) == -EMSGSIZE);
  CHECK(rig.transmitted.empty());
  request.resize(56);  // what is missing is zero
  CHECK(program.send(request, Program::header()) == 0);
  CHECK(rig.transmitted.size() == 1);
}

TEST_CASE("umad: a TID that is under way is EINVAL, except for responses to others") {
  UmadRig rig;
  Program program(rig), other(rig);
  REQUIRE(program.agent() == 0);
  REQUIRE(other.agent() == 0);
  REQUIRE(program.send(a_mad(kSubnAdm, kGet, 5)) == 0);
  CHECK(program.send(a_mad(kSubnAdm, kSet, 5)) == -EINVAL);
  CHECK(program.send(a_mad(kPerf, kGet, 5)) == 0);
  CHECK(program.send(a_mad(kSubnAdm, kGetResp, 5)) == 0);
  CHECK(program.send(a_mad(kSubnAdm, kGetResp, 5)) == -EINVAL);
  umad::Header elsewhere = Program::header();
  elsewhere.lid = __builtin_bswap16(8);
  CHECK(program.send(a_mad(kSubnAdm, kGetResp, 5), elsewhere) == 0);
  CHECK(other.send(a_mad(kSubnAdm, kGet, 5)) == 0);
  rig.pass(kSecond);  // all time out
  CHECK(program.send(a_mad(kSubnAdm, kGet, 5)) == 0);
}

TEST_CASE("umad: a send that expects no answer leaves nothing to read") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent() == 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(program.send(a_mad(kSubnAdm, kGet, 5), Program::header(0, 0)) == 0);
    rig.pass(1);
  }
  CHECK(program.read() == -EAGAIN);
  CHECK(rig.port.sends_under_way() == 0);
}

TEST_CASE("umad: SA requests wait, are refused with EBUSY, or expire with ETIMEDOUT") {
  UmadRig rig;
  rig.port.configure_limiter({MadSemantics::kDoc, 1, 2, 20});
  Program program(rig);
  REQUIRE(program.agent() == 0);
  for (uint64_t i = 1; i <= 3; ++i) CHECK(program.send(a_mad(kSubnAdm, kGet, i)) == 0);
  CHECK(program.send(a_mad(kSubnAdm, kGet, 4)) == -EBUSY);
  CHECK(program.send(a_mad(kSubnAdm, kGet, 4)) == -EBUSY);  // its TID is not under way
  CHECK(rig.port.limiter().counters().drops.get() == 2);
  rig.pass(20 * kMillisecond);
  for (uint64_t i = 2; i <= 3; ++i) {
    CHECK(program.read() == 56 + 24);
    CHECK(program.header_got.status == ETIMEDOUT);
    CHECK((wire::load64(&program.message[8]) & 0xff) == i);
  }
  CHECK(program.read() == -EAGAIN);
}

TEST_CASE("umad: a long message with RMPP active is DATA, whatever RMPP header it has") {
  UmadRig rig;
  Program program(rig);
  REQUIRE(program.agent(mad::kSubnAdm, 1, {mad::kGetTable}) == 0);
  mad::Message table = mad::message_of(a_mad(mad::kSubnAdm, mad::kGetTableResp, 5));
  table.resize(392);
  table[26] = mad::kRmppActive;  // no type, as OpenSM
  CHECK(program.send(table, Program::header(0, 0)) == 0);
  REQUIRE(!rig.transmitted.empty());
  CHECK(rig.transmitted[0].rmpp_type() == mad::kRmppData);
  CHECK(rig.transmitted[0].rmpp_flags() == (mad::kRmppActive | mad::kRmppFirst));
}
