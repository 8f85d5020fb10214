#include "core/takeover/fault.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>

#include "core/base/kstrto.h"
#include "core/base/text.h"

namespace rocefs {
namespace {

constexpr std::string_view kOperations[] = {
    "lookup", "getattr", "setattr", "readlink",   "open", "read",   "write", "release",
    "ioctl",  "opendir", "readdir", "releasedir", "poll", "statfs", "own",   "any"};
constexpr std::string_view kStages[] = {"taken",      "applied",   "staged",
                                        "committing", "committed", "answered"};
constexpr std::string_view kPlaces[] = {"restore", "resend"};

bool one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool known(std::string_view point) {
  auto dash = static_cast<size_t>(std::find(point.begin(), point.end(), '-') - point.begin());
  if (dash == point.size()) return one_of(point, kPlaces);
  return one_of(point.substr(0, dash), kOperations) && one_of(point.substr(dash + 1), kStages);
}

}  // namespace

Result<void> Faults::arm(std::string_view text) {
  for (std::string_view word : split(text, ",")) {
    if (Result<void> armed = arm_one(word); !armed) return armed;
  }
  return {};
}

Result<void> Faults::arm_one(std::string_view word) {
  if (word == "no-resend") {
    state_.no_resend = true;
    return {};
  }
  size_t colon = std::min(word.find(':'), word.size());
  std::string_view point = word.substr(0, colon);
  std::string_view count = word.substr(std::min(colon + 1, word.size()));
  if (!known(point)) return errorf(EINVAL, "ROCEFS_FAULT: no fault point {}", point);
  state_.at = 1;
  if (count == "each") {
    state_.at = 0;
  } else if (colon < word.size()) {
    Result<uint64_t> number = kstrtou64(count, 10);
    if (!number || *number == 0) return errorf(EINVAL, "ROCEFS_FAULT: {}: a count is wanted", word);
    state_.at = *number;
  }
  point.copy(state_.point, sizeof state_.point - 1);
  return {};
}

void Faults::pass(std::string_view name) {
  if (name != state_.point) return;
  uint64_t times = state_.passed.fetch_add(1) + 1;
  if (state_.at != 0 && times != state_.at) return;
  state_.fired.store(true);
  std::fprintf(stderr, "rocefs: fault point %s fired\n", state_.point);
  std::fflush(stderr);
  ::raise(SIGKILL);
}

void Faults::pass(std::string_view operation, std::string_view stage) {
  std::string_view wanted(state_.point);
  if (!wanted.ends_with(stage)) return;
  std::string_view who = wanted.substr(0, wanted.find('-'));
  if (who.size() + 1 + stage.size() != wanted.size()) return;
  if (who == operation || who == "any") pass(wanted);
}

std::string Faults::take_fired() {
  return state_.fired.exchange(false) ? state_.point : "";
}

}  // namespace rocefs
