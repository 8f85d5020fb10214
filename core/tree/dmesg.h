// Dmesg: the daemon's log in the kernel's form, where users look for the reason of a refusal. The
// oldest lines are dropped when it is full. Control thread.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/tree/knob.h"
#include "core/tree/line_log.h"
#include "core/tree/tree.h"

namespace rocefs {

// Log levels:
enum class LogLevel : uint8_t {
  kErr,      // failures without a writer to report to
  kWarning,  // refused stores
  kInfo,     // the daemon's own actions: start, reset
  kDebug,    // accepted stores
};
inline constexpr size_t kLogLevels = 4;

class Dmesg final : public KnobOwner {
 public:
  static constexpr size_t kMaxBytes = 256 * 1024;
  using Saved = SavedRing<kMaxBytes>;
  explicit Dmesg(size_t max_bytes = kMaxBytes) : lines_(max_bytes) {}

  // No effect above log_level. Control characters in `line` become '?': the line may quote a user's
  // text.
  void log(LogLevel level, TimeNs at, std::string_view line);
  // Calls `listener` for each line that is kept, as text() has it, without the line feed.
  using Listener = std::function<void(LogLevel, std::string_view line)>;
  void set_listener(Listener listener) { listener_ = std::move(listener); }
  bool logs(LogLevel level) const { return level <= level_.load(std::memory_order_relaxed); }
  // As LineLog::keep().
  void keep(Journal& journal, Saved& saved) { lines_.keep(journal, saved); }
  // Every line as `[    5.123456] LINE`.
  std::string text() const { return lines_.text(); }

  // Adds dmesg and log_level. The engine and this object outlive the tree.
  void add_files(Tree& tree, const std::string& directory, Engine& engine);
  void apply(std::span<const KnobValue> values) override;

 private:
  LineLog lines_;
  Listener listener_;
  std::atomic<LogLevel> level_{LogLevel::kInfo};  // set on the core's thread
};

}  // namespace rocefs
