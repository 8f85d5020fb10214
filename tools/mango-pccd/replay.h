// Replay: a recording of calls, from pcc/calls of a device, is fed into an algorithm, and what it
// decides now is compared with what is recorded. No device and no daemon are needed.
#pragma once

#include <span>
#include <string_view>

namespace rocefs {

// Word on the command line of a process that replays.
inline constexpr std::string_view kReplayWord = "replay";

// Main program of such a process; `words` follow that word. The report goes to stdout. Returns the
// exit status: 0 if all decisions are the same, 1 if some differ, 2 if the input is bad or nothing
// could be replayed, with a reason on stderr.
int replay(std::span<char* const> words);

}  // namespace rocefs
