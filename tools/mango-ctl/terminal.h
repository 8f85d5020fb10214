// Terminal: stdout as a screen that is drawn anew at each refresh, where it is one; and the pause
// between two refreshes, which a signal ends.
#pragma once

#include <string>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {

class Terminal {
 public:
  // Whoever looks at a terminal sees its former content again when this ends, whatever ends it:
  // SIGINT, SIGTERM and SIGHUP are heard by pause().
  explicit Terminal(bool screen_wanted);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Lines that the screen has room for; without a screen all are shown.
  size_t lines() const;
  // Draws a whole refresh; false when nobody reads it any more.
  bool draw(std::string_view text);
  // False when a signal came.
  bool pause(double seconds);

 private:
  bool screen_;
  Fd signals_;
};

}  // namespace rocefs
