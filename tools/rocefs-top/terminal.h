// Terminal: shows pages and reads keys, by ncurses. Restores the terminal when it goes.
#pragma once

#include <cstddef>
#include <memory>

#include "core/base/result.h"
#include "tools/rocefs-top/page.h"

namespace rocefs::top {

// One thread, one at a time in a process: ncurses has its own state.
class Terminal {
 public:
  // ENOTTY if stdin and stdout are no terminal; ENOTSUP if the terminal that $TERM names is not
  // known or cannot move its cursor. Colours unless $NO_COLOR is set.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();

  size_t width() const;
  size_t height() const;
  void draw(const Page& page);
  // The next key that was pressed (keys.h), kNoKey if none was. A new size is a key.
  int key();

 private:
  explicit Terminal(void* screen) : screen_(screen) {}
  void begin();
  int attribute(Style style) const;

  void* screen_;
  bool colours_ = false;
};

}  // namespace rocefs::top
