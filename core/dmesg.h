// Dmesg: the daemon's log in the kernel's form, so that people find the reason of a refusal where
// they would look for it. Oldest lines go first when it is full. On the control thread.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>

#include "core/journal.h"
#include "core/knob.h"
#include "core/time.h"
#include "core/tree.h"

namespace rocefs {

// The newest lines, in the journal: a ring.
struct SavedLog {
  static constexpr uint64_t kSize = 64 * 1024;
  uint64_t end;  // bytes ever written
  char bytes[kSize];
};

// What is said at which level:
enum class LogLevel : uint8_t {
  kErr,      // what failed and had no writer to tell it to
  kWarning,  // refused stores
  kInfo,     // what the daemon does by itself: start, reset
  kDebug,    // accepted stores
};

class Dmesg final : public KnobOwner {
 public:
  explicit Dmesg(size_t max_bytes = 256 * 1024) : max_bytes_(max_bytes) {}

  // Nothing where log_level says less. Control characters in `line` become '?': a user's text may
  // be quoted in it.
  void log(LogLevel level, TimeNs at, std::string_view line);
  bool logs(LogLevel level) const { return level <= level_.load(std::memory_order_relaxed); }
  // Takes up the lines that `saved` holds, and keeps there what is logged from now on; it comes
  // with the journal's next commit. Both outlive this.
  void keep(Journal& journal, SavedLog& saved);
  // Every line as `[    5.123456] LINE`.
  std::string text() const;

  // dmesg and log_level. This and the engine outlive the tree.
  void add_files(Tree& tree, const std::string& directory, Engine& engine);
  void apply(std::span<const KnobValue> values) override;

 private:
  void add(std::string text);
  void save(std::string_view text);

  const size_t max_bytes_;
  size_t bytes_ = 0;
  std::deque<std::string> lines_;
  SavedLog* saved_ = nullptr;
  uint64_t end_ = 0;  // of what is saved, as it will be after the commit
  std::atomic<LogLevel> level_{LogLevel::kInfo};  // set on the core's thread
};

}  // namespace rocefs
