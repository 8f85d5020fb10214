// What the daemon and mango-pccd say to each other: a datagram for each order, for its answer, and
// for what is told unasked.
//
//   17 apply 3            an order: its number, what to do, with what
//   17 ok                 its answer
//   17 error 22 wai:%20…  or why not, with an errno
//   log 1 TEXT            unasked
//
// Words are separated by one blank; what would end one is written %XX within it, and an empty one
// is %. There is one way to write each message, and no other is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/tree/dmesg.h"
#include "pcc/card/backend.h"

namespace rocefs {

// No message is longer.
inline constexpr size_t kMaxCardMessage = 128 * 1024;

struct CardOrder {
  struct Load {
    std::string directory;
  };
  struct Unload {
    unsigned slot;
  };
  struct Apply {
    unsigned slot;
    std::optional<uint32_t> qpn;
  };
  // With it come the descriptors of the signals page and the control page.
  struct Start {
    unsigned pollers;  // 0: it is called by Round, in lockstep
    unsigned interval_us;
  };
  struct Stop {};
  struct SetInterval {
    unsigned interval_us;
  };
  struct Update {
    unsigned slot;
    PccBackend::Assignments changes;
  };
  struct Echo {
    std::string message;
  };
  // Calls the algorithms that are due at this time.
  struct Round {
    TimeNs now;
  };

  uint64_t id = 0;  // not 0
  std::variant<Load, Unload, Apply, Start, Stop, SetInterval, Update, Echo, Round> what;
};

struct CardAnswer {
  struct Done {};
  struct Echoed {
    std::string message;
  };
  // When the next algorithm is due, or kNever.
  struct NextRound {
    TimeNs due;
  };

  uint64_t id = 0;
  std::variant<Error, Done, PccLoaded, PccAlgorithmInfo, Echoed, NextRound> what;
};

// Unasked. `text` is the rest of the message, as it is.
struct CardLog {
  LogLevel level;
  std::string text;
};
// The last words of a process that is about to end: why, or where it was.
struct CardDied {
  std::string text;
};

using CardWord = std::variant<CardAnswer, CardLog, CardDied>;

// The verb of an order, for people.
std::string_view verb_of(const CardOrder& order);

std::string format_order(const CardOrder& order);
std::string format_word(const CardWord& word);
// EPROTO for what is none: also where a name, a slot, a number of things or an errno is none that
// there can be. What is parsed is formatted to the same bytes.
Result<CardOrder> parse_order(std::string_view message);
Result<CardWord> parse_word(std::string_view message);

}  // namespace rocefs
