#include "tools/rocefs-top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/rocefs-top/delay.h"
#include "tools/rocefs-top/keys.h"

namespace rocefs::top {
namespace {

constexpr size_t kLongestInput = 64;

}  // namespace

View::View(ViewStart start)
    : mount_point_(printable(start.mount_point, start.utf8)),
      utf8_(start.utf8),
      screen_(start.screen),
      delay_(start.delay) {
  for (size_t i = 0; i < kScreens; ++i) {
    const auto screen = static_cast<Screen>(i);
    tabs_[i].order = order_by(screen, busiest_column(screen));
  }
  if (start.order) tab().order = *start.order;
}

void View::take(Look look) {
  failure_.clear();
  if (paused_) return;
  before_ = std::exchange(now_, std::move(look));
  if (!before_) before_ = now_;
}

void View::take_failure(const std::string& reason) {
  failure_ = printable(reason, utf8_);
}

bool View::time_stands() const {
  return now_ && now_->virtual_clock && seconds_between(*before_, *now_) == 0;
}

Table View::table() const {
  const Tab& tab = tabs_[static_cast<size_t>(screen_)];
  const Look& now = *now_;
  Table table(screen_, *before_, now, counts_, utf8_);
  if (hides_idle_) table.drop_idle();
  table.filter(tab.filter);
  table.sort(tab.order);
  return table;
}

bool View::press(int key) {
  notice_.clear();
  if (key == kResized || key == kNoKey) return true;
  switch (mode_) {
    case Mode::kTable:
      return press_in_table(key);
    case Mode::kHelp:
      mode_ = Mode::kTable;
      return key != kFunction + 10;
    case Mode::kSortMenu:
      press_in_menu(key);
      return true;
    default:
      press_in_prompt(key);
      return true;
  }
}

bool View::press_in_table(int key) {
  if (key == 'q' || key == 'Q' || key == kFunction + 10) return false;
  if (move(key) || choose(key)) return true;
  switch (key) {
    case 'h':
    case '?':
    case kFunction + 1:
      mode_ = Mode::kHelp;
      break;
    case kFunction + 3:
      open_prompt(Mode::kSearch);
      break;
    case 'n':
      search(true);
      break;
    case '/':
    case '\\':
    case kFunction + 4:
      open_prompt(Mode::kFilter);
      break;
    case 's':
      open_prompt(Mode::kDelay);
      break;
    case '-':
    case kFunction + 7:
      set_delay(delay_ / 2);
      break;
    case '+':
    case '=':
    case kFunction + 8:
      set_delay(delay_ * 2);
      break;
    case 'p':
    case 'Z':
    case ' ':
      paused_ = !paused_;
      break;
    case kEscape:
      tab().filter.clear();
      break;
    default:
      break;
  }
  return true;
}

bool View::choose(int key) {
  const size_t columns = columns_of(screen_).size();
  const auto at = static_cast<size_t>(screen_);
  if (key >= '1' && key < '1' + static_cast<int>(kScreens)) {
    show(static_cast<Screen>(key - '1'));
    return true;
  }
  switch (key) {
    case kTab:
    case kFunction + 2:
      show(static_cast<Screen>((at + 1) % kScreens));
      return true;
    case kBackTab:
      show(static_cast<Screen>((at + kScreens - 1) % kScreens));
      return true;
    case 'c':
    case kFunction + 5:
      counts_ = !counts_;
      return true;
    case 'i':
    case kFunction + 9:
      hides_idle_ = !hides_idle_;
      return true;
    case '<':
    case ',':
      sort_by((tab().order.column + columns - 1) % columns);
      return true;
    case '>':
    case '.':
      sort_by((tab().order.column + 1) % columns);
      return true;
    case 'I':
    case 'R':
      tab().order.descending = !tab().order.descending;
      return true;
    case 'P':
      sort_by(busiest_column(screen_));
      return true;
    case 'M':
      sort_by(congestion_column(screen_));
      return true;
    case 'N':
      sort_by(0);
      return true;
    case kFunction + 6:
      mode_ = Mode::kSortMenu;
      menu_ = tab().order.column;
      return true;
    default:
      return false;
  }
}

bool View::move(int key) {
  Tab& at = tab();
  const size_t far = at.selected + 1'000'000;
  switch (key) {
    case kUp:
    case 'k':
      at.selected -= std::min<size_t>(at.selected, 1);
      return true;
    case kDown:
    case 'j':
      ++at.selected;
      return true;
    case kPageUp:
      at.selected -= std::min(at.selected, body_);
      return true;
    case kPageDown:
      at.selected += body_;
      return true;
    case kHome:
    case 'g':
      at.selected = 0;
      return true;
    case kEnd:
    case 'G':
      at.selected = far;  // the page brings it back to the last row
      return true;
    case kLeft:
      at.skipped -= std::min<size_t>(at.skipped, 1);
      return true;
    case kRight:
      at.skipped = std::min(at.skipped + 1, columns_of(screen_).size() - 2);
      return true;
    default:
      return false;
  }
}

void View::show(Screen screen) {
  screen_ = screen;
}

void View::sort_by(size_t column) {
  tab().order = order_by(screen_, column);
  tab().selected = 0;
}

void View::set_delay(TimeNs delay) {
  delay_ = std::clamp(delay, kShortestDelay, kLongestDelay);
  notice_ = "A look every " + delay_text(delay_);
}

void View::press_in_menu(int key) {
  const size_t columns = columns_of(screen_).size();
  switch (key) {
    case kUp:
    case 'k':
      menu_ = (menu_ + columns - 1) % columns;
      break;
    case kDown:
    case 'j':
      menu_ = (menu_ + 1) % columns;
      break;
    case kHome:
      menu_ = 0;
      break;
    case kEnd:
      menu_ = columns - 1;
      break;
    case kEnter:
      sort_by(menu_);
      [[fallthrough]];
    case kEscape:
    case 'q':
    case kFunction + 6:
    case kFunction + 10:
      mode_ = Mode::kTable;
      break;
    default:
      break;
  }
}

void View::open_prompt(Mode mode) {
  mode_ = mode;
  old_filter_ = tab().filter;
  typed_ = mode == Mode::kFilter ? tab().filter : "";
}

void View::close_prompt(bool kept) {
  if (mode_ == Mode::kFilter) tab().filter = kept ? typed_ : old_filter_;
  if (mode_ == Mode::kDelay && kept && !typed_.empty()) {
    Result<TimeNs> delay = parse_delay(typed_);
    if (delay) set_delay(*delay);
    if (!delay) notice_ = delay.error().reason;
  }
  mode_ = Mode::kTable;
}

void View::press_in_prompt(int key) {
  if (key == kEnter || key == kEscape) return close_prompt(key == kEnter);
  if (mode_ == Mode::kSearch && key == kFunction + 3) return search(true);
  if (key == kBackspace && !typed_.empty()) typed_.pop_back();
  if (key >= 0x20 && key < 0x7f && typed_.size() < kLongestInput) typed_ += static_cast<char>(key);
  if (mode_ == Mode::kFilter) tab().filter = typed_;
  if (mode_ == Mode::kSearch) {
    found_ = typed_;
    search(false);
  }
}

void View::search(bool further) {
  if (!now_ || found_.empty()) return;
  const std::optional<size_t> row = table().find(found_, tab().selected + (further ? 1 : 0));
  if (row) tab().selected = *row;
  if (!row) notice_ = "No row has '" + found_ + "'";
}

}  // namespace rocefs::top
