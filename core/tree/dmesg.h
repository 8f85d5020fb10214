// Dmesg: the daemon's log in the kernel's form, so that people find the reason of a refusal where
// they would look for it. Oldest lines go first when it is full. On the control thread.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/tree/knob.h"
#include "core/tree/line_log.h"
#include "core/tree/tree.h"

namespace rocefs {

// What is said at which level:
enum class LogLevel : uint8_t {
  kErr,      // what failed and had no writer to tell it to
  kWarning,  // refused stores
  kInfo,     // what the daemon does by itself: start, reset
  kDebug,    // accepted stores
};

class Dmesg final : public KnobOwner {
 public:
  static constexpr size_t kMaxBytes = 256 * 1024;
  using Saved = SavedRing<kMaxBytes>;
  explicit Dmesg(size_t max_bytes = kMaxBytes) : lines_(max_bytes) {}

  // Nothing where log_level says less. Control characters in `line` become '?': a user's text may
  // be quoted in it.
  void log(LogLevel level, TimeNs at, std::string_view line);
  bool logs(LogLevel level) const { return level <= level_.load(std::memory_order_relaxed); }
  // As LineLog::keep().
  void keep(Journal& journal, Saved& saved) { lines_.keep(journal, saved); }
  // Every line as `[    5.123456] LINE`.
  std::string text() const { return lines_.text(); }

  // dmesg and log_level. This and the engine outlive the tree.
  void add_files(Tree& tree, const std::string& directory, Engine& engine);
  void apply(std::span<const KnobValue> values) override;

 private:
  LineLog lines_;
  std::atomic<LogLevel> level_{LogLevel::kInfo};  // set on the core's thread
};

}  // namespace rocefs
