#include "core/loop/io_uring_refusal.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "core/loop/io_ring.h"

using namespace rocefs;

namespace {

std::string said(int code, IoUringBarriers barriers) {
  Error refusal = io_uring_refusal(code, barriers);
  CHECK(refusal.code == code);
  return refusal.reason;
}

const std::string kProfile =
    "; the seccomp profile in force must allow io_uring_setup, io_uring_enter and "
    "io_uring_register, as rocefs's own does: tools/containers/seccomp.json, installed in "
    "share/rocefs";

}  // namespace

TEST_CASE("io_uring refusal: a seccomp filter is reported with the profile that allows io_uring") {
  CHECK(said(EPERM, {true, 0}) == "io_uring is forbidden here (EPERM)" + kProfile);
  CHECK(said(EACCES, {true, 0}) == "io_uring is forbidden here (EACCES)" + kProfile);
  CHECK(said(ENOSYS, {true, 0}) == "io_uring is forbidden here (ENOSYS)" + kProfile);
}

TEST_CASE("io_uring refusal: the sysctl is reported with its value") {
  std::string sysctl = "; the sysctl kernel.io_uring_disabled is 2 and must be 0";
  CHECK(said(EPERM, {false, 2}) == "io_uring is forbidden here (EPERM)" + sysctl);
  CHECK(said(EPERM, {true, 2}) == "io_uring is forbidden here (EPERM)" + sysctl + kProfile);
}

TEST_CASE("io_uring refusal: an error without a known cause is reported without a guess") {
  CHECK(said(ENOSYS, {false, 0}) == "this kernel has no io_uring");
  CHECK(said(EPERM, {false, 0}) == "io_uring is forbidden here (EPERM)");
  CHECK(said(ENOMEM, {true, 2}) == "io_uring: not enough locked memory (ulimit -l) for its rings");
  CHECK(said(EMFILE, {true, 2}) == "io_uring: Too many open files");
}

TEST_CASE("io_uring refusal: a descriptor that is not a ring has no refusals") {
  // Where rings are forbidden, or unknown as in an emulator, it is refused as any.
  if (IoRing::create(4)) CHECK(refused_on_ring(-1) == 0);
}

TEST_CASE(
    "io_uring refusal: a kernel without multishot recvmsg is reported with the version needed") {
  CHECK(multishot_refusal(0));
  Result<void> old = multishot_refusal(EINVAL);
  REQUIRE_FALSE(old);
  CHECK(old.error().code == ENOSYS);
  CHECK(old.error().reason ==
        "this kernel's io_uring cannot receive datagrams as an uplink must (multishot recvmsg): it "
        "takes Linux 6.0");
  CHECK(multishot_refusal(EPERM).error().code == EPERM);
}
