#include "core/loop/io_choice.h"

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/each_loop.h"
#include "test/skip.h"

using namespace rocefs;

namespace {

// Runs `holds` in a process in which `call` fails with `code`, if its second argument is `argument`
// (-1: always).
void check_refused(unsigned call, int argument, int code, const std::function<bool()>& holds) {
  pid_t child = ::fork();
  if (child == 0) {
    std::vector<sock_filter> filter = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, static_cast<uint8_t>(argument < 0 ? 1 : 3))};
    if (argument >= 0) {
      filter.push_back(
          sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 8));
      filter.push_back(
          sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(argument), 0, 1));
    }
    filter.push_back(
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)));
    filter.push_back(sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program{static_cast<uint16_t>(filter.size()), filter.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(77);
    }
    ::_exit(holds() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) test::skip("no seccomp filters here");
  CHECK(WEXITSTATUS(status) == 0);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void needs_io_uring() {
  if (test::usable_kinds().size() < 2) test::skip("io_uring is forbidden here");
}

}  // namespace

TEST_CASE("io choice: ROCEFS_LOOP takes three words, and no others") {
  struct Row {
    const char* word;
    std::optional<IoKind> kind;
  };
  const test::LoopWord restored(IoKind::kPoll);
  for (const Row& row : {Row{"poll", IoKind::kPoll}, Row{"io_uring", IoKind::kIoUring},
                         Row{"auto", {}}, Row{"", {}}}) {
    ::setenv("ROCEFS_LOOP", row.word, 1);
    Result<std::optional<IoKind>> wanted = wanted_io();
    REQUIRE(wanted);
    CHECK(*wanted == row.kind);
  }
  ::unsetenv("ROCEFS_LOOP");
  CHECK(!wanted_io()->has_value());
  for (const char* word : {"epoll", "POLL", "poll ", "1"}) {
    ::setenv("ROCEFS_LOOP", word, 1);
    Result<std::optional<IoKind>> wanted = wanted_io();
    REQUIRE_FALSE(wanted);
    CHECK(wanted.error().code == EINVAL);
    CHECK(wanted.error().reason ==
          std::string("ROCEFS_LOOP is '") + word + "': it takes poll, io_uring or auto");
  }
}

TEST_CASE("io choice: io_uring is taken where it can be used, and polls where they are wanted") {
  needs_io_uring();
  Result<ChosenIo> chosen = choose_io({}, 8);
  REQUIRE(chosen);
  CHECK(chosen->io->kind() == IoKind::kIoUring);
  CHECK(chosen->why_poll.empty());
  chosen = choose_io(IoKind::kPoll, 8);
  REQUIRE(chosen);
  CHECK(chosen->io->kind() == IoKind::kPoll);
  CHECK(chosen->why_poll == "ROCEFS_LOOP asks for it");
}

TEST_CASE("io choice: when seccomp forbids io_uring, polls are taken, and the reason names both") {
  needs_io_uring();
  for (unsigned call : {__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register}) {
    check_refused(call, -1, EPERM, [] {
      Result<ChosenIo> chosen = choose_io({}, 8);
      return chosen && chosen->io->kind() == IoKind::kPoll &&
             has(chosen->why_poll, "forbidden here (EPERM)") &&
             has(chosen->why_poll, "io_uring_setup") && has(chosen->why_poll, "seccomp");
    });
  }
  check_refused(__NR_io_uring_setup, -1, ENOMEM, [] {
    Result<ChosenIo> chosen = choose_io({}, 8);
    return chosen && has(chosen->why_poll, "locked memory");
  });
}

TEST_CASE("io choice: io_uring that is asked for and forbidden is refused with the reason") {
  needs_io_uring();
  check_refused(__NR_io_uring_setup, -1, EPERM, [] {
    Result<ChosenIo> chosen = choose_io(IoKind::kIoUring, 8);
    return !chosen && chosen.error().code == EPERM &&
           has(chosen.error().reason, "forbidden here (EPERM)") &&
           has(chosen.error().reason, "seccomp");
  });
}

// Linux 5.15 has io_uring without rings of buffers, which came with 5.19.
TEST_CASE("io choice: io_uring that cannot receive datagrams is not taken, but if it is wanted") {
  needs_io_uring();
  check_refused(__NR_io_uring_register, IORING_REGISTER_PBUF_RING, EINVAL, [] {
    Result<ChosenIo> chosen = choose_io({}, 8);
    return chosen && chosen->io->kind() == IoKind::kPoll &&
           has(chosen->why_poll, "it takes Linux 6.0");
  });
  check_refused(__NR_io_uring_register, IORING_REGISTER_PBUF_RING, EINVAL, [] {
    Result<ChosenIo> chosen = choose_io(IoKind::kIoUring, 8);
    return chosen && chosen->io->kind() == IoKind::kIoUring &&
           chosen->io->can_receive_messages().error().code == ENOSYS;
  });
}
