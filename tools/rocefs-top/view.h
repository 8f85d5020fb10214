// View: what the keys have chosen, and the page that follows from it and the last looks. It knows
// no terminal.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "core/base/time.h"
#include "tools/rocefs-top/look.h"
#include "tools/rocefs-top/page.h"
#include "tools/rocefs-top/table.h"

namespace rocefs::top {

struct ViewStart {
  std::string mount_point;
  Screen screen = Screen::kDevices;
  std::optional<Order> order;  // of `screen`
  TimeNs delay = kSecond;      // of real time, between looks
  bool utf8 = false;           // of the terminal
};

// One thread.
class View {
 public:
  explicit View(ViewStart start);

  // A new look, or why there was none; looks that come while the view is paused are dropped.
  void take(Look look);
  void take_failure(const std::string& reason);
  // False: the program ends.
  bool press(int key);
  // Fits a terminal of any size.
  Page page(size_t width, size_t height);

  TimeNs delay() const { return delay_; }
  // Whether looks are wanted.
  bool paused() const { return paused_; }

 private:
  enum class Mode { kTable, kHelp, kSortMenu, kFilter, kSearch, kDelay };
  struct Tab {
    Order order;
    size_t selected = 0, top = 0, skipped = 0;  // rows, the first that is shown, columns
    std::string filter;
  };
  Tab& tab() { return tabs_[static_cast<size_t>(screen_)]; }
  Table table() const;
  bool time_stands() const;

  bool press_in_table(int key);
  bool choose(int key);  // a screen, an order or what is shown
  bool move(int key);    // the cursor
  void press_in_menu(int key);
  void press_in_prompt(int key);
  void open_prompt(Mode mode);
  void close_prompt(bool kept);
  void search(bool further);
  void sort_by(size_t column);
  void show(Screen screen);
  void set_delay(TimeNs delay);

  void add_table(Page& page, size_t width, size_t height);
  void add_menu(Page& page, size_t width, size_t height) const;
  Line tab_line(const Table& table, size_t all_rows, size_t width) const;
  Line last_line(Page& page, size_t width) const;

  const std::string mount_point_;
  const bool utf8_;
  std::array<Tab, kScreens> tabs_;
  Screen screen_;
  Mode mode_ = Mode::kTable;
  bool counts_ = false, hides_idle_ = false, paused_ = false;
  TimeNs delay_;
  std::optional<Look> before_, now_;
  std::string failure_;                 // of the last look
  std::string typed_, found_, notice_;  // in a prompt; the last word searched; for the last line
  std::string old_filter_;
  size_t menu_ = 0, body_ = 1;  // chosen line of the menu; rows that fit
};

}  // namespace rocefs::top
