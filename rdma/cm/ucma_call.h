// Parts of each command of librdmacm: what it asks, and its answer.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/base/result.h"

namespace rocefs::ucma {

// Minimum of a command that must be present: newer ones are longer.
template <class Command>
Result<Command> read(std::span<const uint8_t> in, size_t least = sizeof(Command)) {
  if (in.size() < least) return errorf(EINVAL, "{} octets of a command of {}", in.size(), least);
  Command command{};
  std::memcpy(&command, in.data(), std::min(in.size(), sizeof command));
  return command;
}

// Answer of which the program may want only the first part.
template <class Answer>
Result<void> give(const Answer& answer, size_t room, std::string& out,
                  size_t least = sizeof(Answer)) {
  if (room < least) return errorf(ENOSPC, "the answer has {} octets, {} fit", least, room);
  out.assign(reinterpret_cast<const char*>(&answer), std::min(room, sizeof answer));
  return {};
}

}  // namespace rocefs::ucma
