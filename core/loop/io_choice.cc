#include "core/loop/io_choice.h"

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/loop/io_ring.h"
#include "core/loop/poll_io.h"

namespace rocefs {

Result<std::optional<IoKind>> wanted_io() {
  const char* text = std::getenv("ROCEFS_LOOP");
  std::string_view word = text ? text : "auto";
  if (word.empty() || word == "auto") return std::optional<IoKind>();
  for (IoKind kind : {IoKind::kIoUring, IoKind::kPoll}) {
    if (word == name(kind)) return std::optional<IoKind>(kind);
  }
  return errorf(EINVAL, "ROCEFS_LOOP is '{}': it takes poll, io_uring or auto", word);
}

Result<ChosenIo> choose_io(std::optional<IoKind> wanted, unsigned entries) {
  ChosenIo chosen;
  if (wanted == IoKind::kPoll) {
    chosen.why_poll = "ROCEFS_LOOP asks for it";
  } else {
    Result<std::unique_ptr<IoRing>> ring = IoRing::create(entries);
    if (!ring && wanted) return ring.error();
    // A kernel without multishot recvmsg (before Linux 6.0) would have no uplinks.
    Result<void> able = ring && !wanted ? (*ring)->can_receive_messages() : Result<void>();
    if (ring && able) {
      chosen.io = std::move(*ring);
      return chosen;
    }
    chosen.why_poll = ring ? able.error().reason : ring.error().reason;
  }
  Result<std::unique_ptr<PollIo>> made = PollIo::create();
  if (!made) return made.error();
  chosen.io = std::move(*made);
  return chosen;
}

}  // namespace rocefs
