// Knobs: settings that users echo and cat. One constexpr row per knob; the file, its mode, its
// parsing, its errors and its line in the reference all come from the row.
//
// A store goes through these steps: the control thread parses the text by the row; the core's
// thread puts the value among the set's others, asks the owner to check the whole, and applies it;
// the control thread publishes it and answers. What a reader sees is the published value. A store
// is a transaction of one change (core/tree/knob_transaction.h); core/tree/knob_file.h shows them
// as files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"

namespace rocefs {

enum class KnobType : uint8_t {
  kUint,         // decimal, 0x or 0 for octal, as kstrtoull(base 0)
  kDecimal,      // decimal alone, as kstrtoull(base 10)
  kBool,         // kstrtobool(), shown as 0 or 1
  kWord,         // one of `words`, as sysfs_match_string()
  kRate,         // bits per second: 10G, 2500M
  kSize,         // bytes: 64K, 2M
  kDuration,     // 5us, 1.5ms; a bare number is nanoseconds
  kProbability,  // 0..1
  kText,         // any line of at most `max` bytes
};

// kWord holds the index of the word; kRate, kSize and kDuration the number in their base unit.
using KnobValue = std::variant<uint64_t, double, std::string>;

struct KnobRow {
  std::string_view path;  // below the set's directory
  KnobType type;
  uint64_t min;
  uint64_t max;
  std::string_view initial;  // as stored by echo
  std::string_view words;    // for kWord, separated by spaces
  std::string_view unit;
  std::string_view doc;
};

// Index of the row with this path: a mistyped path does not compile.
template <size_t N>
consteval size_t knob_index(const KnobRow (&rows)[N], std::string_view path) {
  for (size_t i = 0; i < N; ++i) {
    if (rows[i].path == path) return i;
  }
  throw "no knob has this path";
}

// EINVAL for malformed text and for values out of the row's range, ERANGE for numbers that do not
// fit the type; the reason quotes the text.
Result<KnobValue> parse_knob(const KnobRow& row, std::string_view text);
// The rows' initial values, one each.
std::vector<KnobValue> initial_values(std::span<const KnobRow> rows);
// Without a newline; parses back to the same value.
std::string format_knob(const KnobRow& row, const KnobValue& value);
// Accepted values for the reference, with their unit: `0 to 1`, `down|up`, `0 to 4095 (us)`.
std::string knob_values(const KnobRow& row);

// Object that a set of knobs configures. Core's thread.
class KnobOwner {
 public:
  virtual ~KnobOwner() = default;
  // Checks rules that span knobs. `proposed` has a value per row. May fail, changes nothing.
  virtual Result<void> check(std::span<const KnobValue> proposed) const;
  // Acts on values that check() accepted. Cannot fail.
  virtual void apply(std::span<const KnobValue> values) = 0;
};

struct KnobChange;

// A table's values and their owner. The owner must outlive the engine's thread.
class KnobSet {
 public:
  // Initial values are the rows', or `start`'s where given (one per row, or none). The owner
  // applies them itself when it is built. Without an owner the values are only kept.
  KnobSet(std::span<const KnobRow> rows, Engine& engine, KnobOwner* owner,
          std::vector<KnobValue> start = {});

  std::span<const KnobRow> rows() const { return rows_; }
  // Control thread: the published values, one per row.
  std::span<const KnobValue> values() const { return published_; }
  const KnobValue& value(size_t index) const { return published_[index]; }
  // Control thread: `changed` runs after each change of a published value.
  void on_change(Task changed) { listeners_.push_back(std::move(changed)); }
  Engine& engine() { return engine_; }
  // Values that `reset` restores: the initial ones, or those published when keep_as_defaults() was
  // called.
  std::span<const KnobValue> defaults() const { return defaults_; }
  void keep_as_defaults() { defaults_ = published_; }
  // Sets one default per row, for a set whose initial values are not those that a reset restores.
  void set_defaults(std::vector<KnobValue> defaults) { defaults_ = std::move(defaults); }
  // Further changes that a store of one knob causes, computed on the control thread from the stored
  // value. They join the transaction, except for knobs that it changes itself; all are checked,
  // applied and published together.
  using Consequences = std::function<std::vector<KnobChange>(const KnobValue& value)>;
  void set_consequences(size_t index, Consequences consequences);
  bool has_consequences(size_t index) const { return consequences_.contains(index); }
  // Refuses stores of one knob by users, of whatever value, while something else holds it. A reset
  // and consequences of other stores pass. Core thread, before all else is checked.
  using Guard = std::function<Result<void>()>;
  void set_guard(size_t index, Guard guard) { guards_[index] = std::move(guard); }
  // Combines the value of a knob of several parts with a store that changes some of them. Core
  // thread. Without a Merge, the stored value replaces the present one.
  using Merge = std::function<Result<KnobValue>(const KnobValue& present, const KnobValue& stored)>;
  void set_merge(size_t index, Merge merge) { merges_[index] = std::move(merge); }
  bool merges(size_t index) const { return merges_.contains(index); }
  // Control thread: the row's file, which is notified after each change of the published value.
  void set_file(size_t index, std::weak_ptr<Attribute> file);

 private:
  friend class KnobTransaction;
  // Control thread. Publishes a value; returns whether it changed.
  bool publish(size_t index, const KnobValue& value);
  // Wakes all pollers of the value.
  void announce(size_t index);

  std::span<const KnobRow> rows_;
  Engine& engine_;
  KnobOwner* owner_;
  std::vector<KnobValue> applied_;    // core thread
  std::vector<KnobValue> published_;  // control thread
  std::vector<KnobValue> defaults_;   // control thread
  std::vector<std::weak_ptr<Attribute>> files_;
  std::vector<Task> listeners_;
  std::map<size_t, Consequences> consequences_;  // by row
  std::map<size_t, Merge> merges_;               // by row
  std::map<size_t, Guard> guards_;               // by row
};

}  // namespace rocefs
