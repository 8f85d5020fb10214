#include "tools/mango-ctl/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>

namespace rocefs {
namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

double now_s() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

bool put(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

winsize size_of_screen() {
  winsize size{};
  (void)::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  if (size.ws_row == 0) size.ws_row = 24;  // a serial line does not know
  if (size.ws_col == 0) size.ws_col = 80;
  return size;
}

}  // namespace

Terminal::Terminal(bool screen_wanted) : screen_(screen_wanted && ::isatty(STDOUT_FILENO)) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC));
  ::signal(SIGPIPE, SIG_IGN);
  if (screen_) (void)put(kEnter);
}

Terminal::~Terminal() {
  if (screen_) (void)put(kLeave);
}

size_t Terminal::lines() const {
  return screen_ ? size_of_screen().ws_row : ~size_t{0};
}

size_t Terminal::columns() const {
  return screen_ ? size_of_screen().ws_col : ~size_t{0};
}

bool Terminal::draw(std::string_view text) {
  if (!screen_) return put(text);
  std::string drawn = "\x1b[H";
  size_t width = columns(), rows = lines();
  for (size_t row = 0; !text.empty() && row < rows; ++row) {
    size_t end = std::min(text.find('\n'), text.size());
    if (row > 0) drawn += "\r\n";
    fmt::format_to(std::back_inserter(drawn), "{:.{}}", text.substr(0, end), width);
    drawn += "\x1b[K";  // erases the rest of the line
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return put(drawn + "\x1b[J");  // erases the rest of the screen
}

bool Terminal::pause(double seconds) {
  double end = now_s() + seconds;
  for (;;) {
    double left = end - now_s();
    if (left <= 0) return true;
    pollfd wait{signals_.get(), POLLIN, 0};
    int ready = ::poll(&wait, 1, static_cast<int>(std::min(left * 1000 + 1, 1e9)));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

}  // namespace rocefs
