#include "tools/rocefs-top/session.h"

#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/clock.h"
#include "tools/rocefs-top/batch.h"
#include "tools/rocefs-top/keys.h"
#include "tools/rocefs-top/printable.h"
#include "tools/rocefs-top/terminal.h"
#include "tools/rocefs-top/view.h"
#include "tools/rocefs-top/watcher.h"

namespace rocefs::top {
namespace {

// Time for which a mount may fail to answer, for example because its worker is replaced.
constexpr TimeNs kPatience = 10 * kSecond;
constexpr TimeNs kAgain = 100 * kMillisecond;
constexpr TimeNs kFirst = 250 * kMillisecond;

void wait_for(TimeNs time) {
  const timespec left{time / kSecond, time % kSecond};
  ::nanosleep(&left, nullptr);
}

// A look, with patience; ENOTCONN at once.
Result<Look> patient_look(LookReader& reader) {
  for (const TimeNs end = monotonic_ns() + kPatience;;) {
    Result<Look> look = reader.look();
    if (look || look.error().code == ENOTCONN || monotonic_ns() >= end) return look;
    wait_for(kAgain);
  }
}

volatile sig_atomic_t ending_signal = 0;  // which asked the program to end

void note_signal(int signal) {
  ending_signal = signal;
}

// Signals that end the program or change the size are taken while it waits, and at no other time.
class SignalGate {
 public:
  SignalGate() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&blocked, signal);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &open_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigdelset(&open_, signal);
  }
  // Behind the start of ncurses, which has handlers of its own.
  void take_over() {
    struct sigaction action {};
    action.sa_handler = note_signal;
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(signal, &action, nullptr);
  }
  void wait(pollfd* files, size_t count, TimeNs time) {
    const timespec left{time / kSecond, time % kSecond};
    ::ppoll(files, count, &left, &open_);
  }

 private:
  sigset_t open_;
};

enum class Outcome { kGoesOn, kQuit, kMountGone };

// Steps of a program that waits for keys, looks and signals.
class Loop {
 public:
  Loop(Watcher& watcher, View& view, Terminal& terminal)
      : watcher_(watcher), view_(view), terminal_(terminal) {}

  Outcome step(SignalGate& gate) {
    const TimeNs now = monotonic_ns();
    if (!asked_ && now >= due_) {
      watcher_.ask();
      asked_ = true;
      due_ = now + view_.delay();
    }
    if (changed_) terminal_.draw(view_.page(terminal_.width(), terminal_.height()));
    changed_ = false;
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {watcher_.descriptor(), POLLIN, 0}};
    const TimeNs left = asked_ ? kPatience : std::max<TimeNs>(due_ - monotonic_ns(), 0);
    gate.wait(files, 2, left);
    if (ending_signal) return Outcome::kQuit;
    if (files[1].revents && !take_look()) return Outcome::kMountGone;
    for (int key; (key = terminal_.key()) != kNoKey;) {
      const TimeNs delay = view_.delay();
      if (!view_.press(key)) return Outcome::kQuit;
      if (view_.delay() != delay) due_ = std::min(due_, monotonic_ns() + view_.delay());
      changed_ = true;
    }
    // A terminal that is gone is readable for ever.
    const bool closed = files[0].revents & (POLLHUP | POLLERR | POLLNVAL);
    return closed ? Outcome::kQuit : Outcome::kGoesOn;
  }
  const std::string& reason() const { return reason_; }

 private:
  // False once the mount has ended.
  bool take_look() {
    std::optional<Result<Look>> look = watcher_.take();
    if (!look) return true;
    asked_ = false;
    changed_ = true;
    if (*look) {
      // Rates need a second look, which need not be awaited for long.
      if (looks_++ == 0) due_ = std::min(due_, monotonic_ns() + kFirst);
      failing_since_ = kNever;
      view_.take(std::move(**look));
      return true;
    }
    const TimeNs now = monotonic_ns();
    failing_since_ = std::min(failing_since_, now);
    due_ = now + kAgain;
    reason_ = look->error().reason;
    view_.take_failure(reason_);
    return look->error().code != ENOTCONN && now < failing_since_ + kPatience;
  }

  Watcher& watcher_;
  View& view_;
  Terminal& terminal_;
  TimeNs due_ = 0, failing_since_ = kNever;
  bool asked_ = false, changed_ = true;
  size_t looks_ = 0;
  std::string reason_;
};

}  // namespace

int refuse(const std::string& reason, int status) {
  std::fprintf(stderr, "rocefs top: %s\n", printable(reason, knows_utf8()).c_str());
  return status;
}

bool knows_utf8() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

int print_tables(LookReader& reader, const std::string& mount_point, const TopOptions& options) {
  const bool utf8 = knows_utf8();
  const size_t column = busiest_column(options.screen);
  const Order order = options.order.value_or(order_by(options.screen, column));
  if (options.csv) std::fputs(csv_heading(options.screen).c_str(), stdout);
  Result<Look> before = patient_look(reader);
  if (!before) return refuse(before.error().reason, 1);
  TimeNs due = monotonic_ns();
  for (uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    due += options.delay;
    wait_for(std::max<TimeNs>(due - monotonic_ns(), 0));
    Result<Look> now = patient_look(reader);
    if (!now) return refuse(now.error().reason, 1);
    Table table(options.screen, *before, *now, false, utf8);
    table.sort(order);
    const std::string text = options.csv ? csv_lines(table, *before, *now)
                                         : table_page(printable(mount_point, utf8), table, *now);
    if (i > 0 && !options.csv) std::fputs("\n", stdout);
    std::fputs(text.c_str(), stdout);
    if (std::fflush(stdout) != 0) return refuse(std::strerror(errno), 1);
    before = std::move(now);
  }
  return 0;
}

int show_in_terminal(LookReader& reader, const std::string& mount_point,
                     const TopOptions& options) {
  SignalGate gate;
  Result<std::unique_ptr<Terminal>> terminal = Terminal::open();
  if (!terminal && terminal.error().code == ENOTTY) return refuse(terminal.error().reason, 1);
  if (!terminal) return refuse(terminal.error().reason + ": --batch prints tables", 1);
  gate.take_over();
  View view({mount_point, options.screen, options.order, options.delay, knows_utf8()});
  Watcher watcher(reader);
  Loop loop(watcher, view, **terminal);
  Outcome outcome;
  while ((outcome = loop.step(gate)) == Outcome::kGoesOn) {
  }
  terminal->reset();
  if (outcome == Outcome::kMountGone) refuse(loop.reason(), 1);
  std::fflush(nullptr);
  ::_exit(outcome == Outcome::kMountGone ? 1 : 0);  // whether or not a look is under way
}

}  // namespace rocefs::top
