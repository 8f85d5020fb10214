// Terminal: stdout, drawn anew at each refresh where it is a screen; and the pause between two
// refreshes, which a signal ends.
#pragma once

#include <string>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {

class Terminal {
 public:
  // Takes the alternate screen; the destructor restores the former content. SIGINT, SIGTERM and
  // SIGHUP end pause(), so that the destructor runs.
  explicit Terminal(bool screen_wanted);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Lines of the screen; without a screen no limit.
  size_t lines() const;
  // Width of the screen; without a screen no limit.
  size_t columns() const;
  // Draws a whole refresh; false when no reader is left.
  bool draw(std::string_view text);
  // False when a signal came.
  bool pause(double seconds);

 private:
  bool screen_;
  Fd signals_;
};

}  // namespace rocefs
