// Files named in stores: limits of open files per user and in total.
#include "core/tree/caller_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "core/process/open_files.h"
#include "test/skip.h"

using namespace rocefs;

namespace {

// A writer with the machine's root.
IdentityPtr user(uid_t uid) {
  auto identity = std::make_shared<Identity>();
  identity->uid = identity->gid = uid;
  identity->root = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  identity->directory = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return identity;
}

struct Desk {
  PollLoop loop;
  CallerFiles files{loop, [](const std::string&) {}};

  // The file, or the errno.
  std::pair<CallerFilePtr, int> open(uid_t uid) {
    int code = -1;
    CallerFilePtr file =
        files.open(user(uid), "/etc/passwd", FileUse::kRead, [&](const Result<void>& opened) {
          code = opened ? 0 : opened.error().code;
          loop.stop();
        });
    loop.run();  // the answer may have come already
    return {std::move(file), code};
  }
  // Opens files for the user into `kept`; returns their number at EAGAIN.
  size_t take_all(uid_t uid, std::vector<CallerFilePtr>& kept) {
    for (size_t taken = 0;; ++taken) {
      auto [file, code] = open(uid);
      if (code != 0) {
        CHECK(code == EAGAIN);
        return taken;
      }
      kept.push_back(std::move(file));
    }
  }
};

}  // namespace

TEST_CASE(
    "caller files: a user may open 256, all users 1,024, 64 for root; closing frees a place") {
  if (::geteuid() != 0) test::skip("not root");
  raise_open_files();
  Desk desk;
  std::vector<CallerFilePtr> kept;
  for (uid_t uid : {60001, 60002, 60003}) CHECK(desk.take_all(uid, kept) == 256);
  CHECK(desk.take_all(60004, kept) == 192);
  CHECK(desk.take_all(60005, kept) == 0);
  CHECK(desk.take_all(0, kept) == 64);
  kept.front().reset();
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int code;
  do {  // until its helper has ended
    auto [file, said] = desk.open(0);
    code = said;
    kept.push_back(std::move(file));
  } while (code == EAGAIN && std::chrono::steady_clock::now() < end);
  CHECK(code == 0);
}
