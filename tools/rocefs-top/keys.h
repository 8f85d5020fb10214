// Keys of a terminal. Characters are themselves; the others have numbers above them.
#pragma once

namespace rocefs::top {

enum Key : int {
  kNoKey = -1,
  kTab = 9,
  kEnter = 13,
  kEscape = 27,
  kBackspace = 127,
  kUp = 0x1000,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kBackTab,
  kResized,
  kFunction = 0x2000,  // F1 is kFunction + 1
};

}  // namespace rocefs::top
