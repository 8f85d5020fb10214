// Messages between the daemon and mango-pccd: a datagram for each order, for its answer, and for
// each event without an order.
//
//   17 apply 3            order: number, verb, arguments
//   17 ok                 answer
//   17 error 22 wai:%20…  answer: errno and reason
//   log 1 TEXT            event
//
// Words are separated by one blank; separators within a word are written %XX, an empty word is %.
// Each message has exactly one encoding; other spellings are rejected.
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

// Maximum size of a message.
inline constexpr size_t kMaxCardMessage = 128 * 1024;

struct CardOrder {
  struct Load {
    std::string directory;
    bool force;
  };
  struct Unload {
    unsigned slot;
  };
  struct Apply {
    unsigned slot;
    std::optional<uint32_t> qpn;
  };
  // Carries the descriptors of the signals page and the control page.
  struct Start {
    unsigned pollers;  // 0: lockstep, called by Round
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
  // Asks for the present values of the parameters.
  struct Read {
    unsigned slot;
  };
  // Whether a debugger may be attached: nothing times out then.
  struct Debug {
    bool on;
  };
  struct Dump {
    uint32_t qpn;
  };
  // Calls the algorithms that are due at this time.
  struct Round {
    TimeNs now;
  };

  uint64_t id = 0;  // not 0
  std::variant<Load, Unload, Apply, Start, Stop, SetInterval, Update, Echo, Round, Debug, Read,
               Dump>
      what;
};

struct CardAnswer {
  struct Done {};
  struct Echoed {
    std::string message;
  };
  struct Dumped {
    std::string text;
  };
  // Time of the next call, or kNever.
  struct NextRound {
    TimeNs due;
  };

  uint64_t id = 0;
  std::variant<Error, Done, PccLoaded, PccAlgorithmInfo, Echoed, NextRound, Dumped> what;
};

// Log line, without an order. `text` is the rest of the message, unescaped.
struct CardLog {
  LogLevel level;
  std::string text;
};
// Last message of a process that is about to end: the reason, or the position.
struct CardDied {
  std::string text;
};

using CardWord = std::variant<CardAnswer, CardLog, CardDied>;

// Verb of an order, for error texts.
std::string_view verb_of(const CardOrder& order);

std::string format_order(const CardOrder& order);
std::string format_word(const CardWord& word);
// EPROTO for a malformed message, also for a name, slot, count or errno out of range. Formatting
// the result gives the same bytes.
Result<CardOrder> parse_order(std::string_view message);
Result<CardWord> parse_word(std::string_view message);

}  // namespace rocefs
