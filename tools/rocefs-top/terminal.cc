#include "tools/rocefs-top/terminal.h"

// Functions, not macros: these have names of every day.
#define NCURSES_NOMACROS
#include <ncurses.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tools/rocefs-top/keys.h"

namespace rocefs::top {
namespace {

enum Pair : short { kOnGreen = 1, kOnCyan, kOnBlue, kGreen, kMagenta, kRed, kCyan };

struct NamedKey {
  int curses, key;
};
constexpr NamedKey kNamedKeys[] = {
    {KEY_UP, kUp},
    {KEY_DOWN, kDown},
    {KEY_LEFT, kLeft},
    {KEY_RIGHT, kRight},
    {KEY_PPAGE, kPageUp},
    {KEY_NPAGE, kPageDown},
    {KEY_HOME, kHome},
    {KEY_END, kEnd},
    {KEY_BTAB, kBackTab},
    {KEY_ENTER, kEnter},
    {KEY_BACKSPACE, kBackspace},
    {KEY_RESIZE, kResized},
    {KEY_DC, kBackspace},
    {KEY_FIND, kHome},
    {KEY_SELECT, kEnd},
};

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open() {
  if (!::isatty(STDOUT_FILENO) || !::isatty(STDIN_FILENO)) {
    return Error{ENOTTY, "a terminal is needed, or --batch"};
  }
  const char* const named = std::getenv("TERM");
  const std::string name = printable(named ? named : "", false);
  SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  if (!screen) return errorf(ENOTSUP, "TERM={}: no such terminal is known", name);
  if (!::tigetstr("cup")) {
    ::endwin();
    ::delscreen(screen);
    return errorf(ENOTSUP, "TERM={} cannot move its cursor", name);
  }
  std::unique_ptr<Terminal> terminal(new Terminal(screen));
  terminal->begin();
  return terminal;
}

void Terminal::begin() {
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
  const char* const none = std::getenv("NO_COLOR");
  colours_ = ::has_colors() && !(none && *none);
  if (!colours_) return;
  ::start_color();
  ::use_default_colors();
  // Black on a colour, and colours that can be read on a dark and on a light ground.
  ::init_pair(kOnGreen, COLOR_BLACK, COLOR_GREEN);
  ::init_pair(kOnCyan, COLOR_BLACK, COLOR_CYAN);
  ::init_pair(kOnBlue, COLOR_WHITE, COLOR_BLUE);
  ::init_pair(kGreen, COLOR_GREEN, -1);
  ::init_pair(kMagenta, COLOR_MAGENTA, -1);
  ::init_pair(kRed, COLOR_RED, -1);
  ::init_pair(kCyan, COLOR_CYAN, -1);
}

Terminal::~Terminal() {
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
}

size_t Terminal::width() const {
  return static_cast<size_t>(std::max(1, getmaxx(stdscr)));
}

size_t Terminal::height() const {
  return static_cast<size_t>(std::max(1, getmaxy(stdscr)));
}

int Terminal::attribute(Style style) const {
  auto one = [&](int with_colour, int without) { return colours_ ? with_colour : without; };
  const auto pair = [](short number) { return static_cast<int>(COLOR_PAIR(number)); };
  const int reverse = static_cast<int>(A_REVERSE), bold = static_cast<int>(A_BOLD);
  switch (style) {
    case Style::kPlain:
      return 0;
    case Style::kQuiet:
      return static_cast<int>(A_DIM);
    case Style::kStrong:
      return bold;
    case Style::kGood:
      return one(pair(kGreen), 0);
    case Style::kNotable:
      return one(pair(kMagenta), bold);
    case Style::kBad:
      return one(pair(kRed) | bold, bold);
    case Style::kTitle:
      return one(pair(kOnGreen), reverse);
    case Style::kSorted:
      return one(pair(kOnCyan), reverse | bold);
    case Style::kSelected:
      return one(pair(kOnCyan), reverse);
    case Style::kTab:
      return 0;
    case Style::kChosenTab:
      return one(pair(kOnBlue) | bold, reverse | bold);
    case Style::kBar:
      return one(pair(kGreen), 0);
    case Style::kKey:
      return 0;
    case Style::kLabel:
      return one(pair(kOnCyan), reverse);
    case Style::kPrompt:
      return one(pair(kOnCyan), reverse);
  }
  return 0;
}

void Terminal::draw(const Page& page) {
  ::erase();
  const size_t rows = std::min(page.lines.size(), height());
  for (size_t y = 0; y < rows; ++y) {
    size_t x = 0;
    for (const Span& span : page.lines[y].spans()) {
      if (x >= width()) break;
      const std::string text = cut(span.text, width() - x);
      ::attrset(attribute(span.style));
      ::mvaddnstr(static_cast<int>(y), static_cast<int>(x), text.data(),
                  static_cast<int>(text.size()));
      x += width_of(text);
    }
  }
  ::attrset(0);
  ::curs_set(page.cursor ? 1 : 0);
  if (page.cursor) ::move(static_cast<int>(rows) - 1, static_cast<int>(*page.cursor));
  ::refresh();
}

int Terminal::key() {
  const int key = ::getch();
  if (key == ERR) return kNoKey;
  for (const NamedKey& named : kNamedKeys) {
    if (named.curses == key) return named.key;
  }
  if (key >= KEY_F(1) && key <= KEY_F(12)) return kFunction + key - KEY_F0;
  if (key == '\n' || key == '\r') return kEnter;
  if (key == 8) return kBackspace;
  return key < 0x80 ? key : 0x3000;  // nothing has that number
}

}  // namespace rocefs::top
