#include "tools/rocefs-view/feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/clock.h"

namespace rocefs {
namespace {

using namespace std::chrono;

constexpr size_t kPinGroup = 2;
// Messages that are kept for listeners that are late.
constexpr size_t kTicks = 16;
constexpr size_t kFirstLines = 500;  // of a log, for a new listener
constexpr TimeNs kLogInterval = kSecond;
// A log is looked at for at most this part of the time: a long one costs more.
constexpr TimeNs kLogPart = 100;

}  // namespace

std::string Feed::Log::news(const MountFiles& files, TimeNs now) {
  if (now < due) return {};
  Result<std::string> all = files.read(path);
  const TimeNs took = monotonic_ns() - now;
  due = now + std::max(kLogInterval, took * kLogPart);
  if (!all) return {};
  const std::string news(new_lines(text, *all));
  text = std::move(*all);
  return json_lines(news, kFirstLines);
}

std::string Feed::Log::last_lines() const {
  return json_lines(text, kFirstLines);
}

Feed::Feed(const MountFiles& files, TimeNs interval, std::function<void()> ended)
    : files_(files),
      interval_(interval),
      dmesg_{"kernel/debug/rocefs/dmesg"},
      stores_{"kernel/debug/rocefs/clock/log"},
      ended_(std::move(ended)) {
  groups_.emplace_back(files, kFabricFiles);
  groups_.emplace_back(files, kFlowFiles);
  thread_ = std::thread([this] { run(); });
}

Feed::~Feed() {
  stop();
  thread_.join();
}

void Feed::stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  news_.notify_all();
}

// Looks at even intervals; one that is late is left out. Nobody waits for a look that hangs but
// those who wait for its message.
void Feed::run() {
  auto due = steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (listeners_ == 0) {
      news_.wait_for(lock, seconds(1));
      due = steady_clock::now();
      if (listeners_ == 0 && !files_.ended()) continue;
    }
    if (news_.wait_until(lock, due, [this] { return stopping_; })) return;
    const bool whole = std::exchange(wants_whole_, false);
    lock.unlock();
    Tick tick = look(whole);
    lock.lock();
    tick.number = ++number_;
    ticks_.push_back(std::move(tick));
    if (ticks_.size() > kTicks) ticks_.pop_front();
    news_.notify_all();
    due = std::max(due + nanoseconds(interval_), steady_clock::now());
    if (!files_.ended()) continue;
    groups_.clear();
    news_.wait_for(lock, seconds(1), [this] { return listeners_ == 0; });
    stopping_ = true;
    news_.notify_all();
    lock.unlock();
    return ended_();
  }
}

Feed::Tick Feed::look(bool wants_whole) {
  auto content = std::make_shared<MessageContent>();
  Tick tick;
  for (size_t i = 0; i < groups_.size() && tick.gone.empty(); ++i) {
    Getter& group = groups_[i];
    if (Result<void> looked = group.look(); !looked) {
      tick.gone = looked.error().reason;
    } else {
      append_json(content->groups,
                  group.other_files() ? whole_group(i, group) : changes_of_group(i, group));
    }
  }
  if (tick.gone.empty()) {
    const TimeNs now = monotonic_ns();
    content->dmesg = dmesg_.news(files_, now);
    content->stores = stores_.news(files_, now);
  }
  tick.changes = std::move(content);
  if (wants_whole) tick.whole = whole();
  const auto wall = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  tick.wall = fmt::format("{}", wall);
  return tick;
}

// Content for a listener that knows nothing yet, as of the last look.
Feed::ContentPtr Feed::whole() const {
  auto content = std::make_shared<MessageContent>();
  for (size_t i = 0; i < groups_.size(); ++i)
    append_json(content->groups, whole_group(i, groups_[i]));
  content->dmesg = dmesg_.last_lines();
  content->stores = stores_.last_lines();
  return content;
}

Feed::Listener::Listener(Feed& feed, std::vector<std::string> pins)
    : feed_(feed), wanted_(std::move(pins)) {
  std::lock_guard lock(feed_.mutex_);
  ++feed_.listeners_;
  feed_.news_.notify_all();
}

Feed::Listener::~Listener() {
  std::lock_guard lock(feed_.mutex_);
  --feed_.listeners_;
  feed_.news_.notify_all();
}

// One look has all pins or none: what is not there, or cannot be shown, is left out of it.
void Feed::Listener::choose_pins() {
  constexpr TimeNs kAgain = 5 * kSecond;
  look_again_ = monotonic_ns() + kAgain;
  all_pins_ = true;
  std::vector<std::string> there;
  for (const std::string& pin : wanted_) {
    if (Getter(feed_.files_, {pin}).look()) there.push_back(pin);
  }
  some_missing_ = there.size() < wanted_.size();
  pins_.reset();
  if (!there.empty()) pins_.emplace(feed_.files_, std::move(there));
}

std::string Feed::Listener::pinned() {
  if (wanted_.empty()) return {};
  const bool again = look_again_ == 0 || (some_missing_ && monotonic_ns() >= look_again_);
  if (again) choose_pins();
  if (pins_ && !pins_->look()) {
    if (!again) choose_pins();
    if (pins_ && !pins_->look()) pins_.reset();
  }
  if (!pins_) return fmt::format("{{\"g\":{},\"paths\":[],\"values\":[]}}", kPinGroup);
  const bool all = std::exchange(all_pins_, false) || pins_->other_files();
  return (all ? whole_group : changes_of_group)(kPinGroup, *pins_);
}

std::string Feed::Listener::next() {
  MessageContent content;
  Tick last;
  {
    std::unique_lock lock(feed_.mutex_);
    auto knows = [&] { return seen_ != 0 && seen_ + 1 >= feed_.ticks_.front().number; };
    auto has_news = [&] {
      if (feed_.stopping_) return true;
      if (seen_ != 0 && feed_.number_ == seen_) return false;
      if (feed_.ticks_.empty() || (!knows() && !feed_.ticks_.back().whole)) {
        feed_.wants_whole_ = true;
        return false;
      }
      return true;
    };
    feed_.news_.wait(lock, has_news);
    if (feed_.stopping_) return {};
    last = feed_.ticks_.back();
    if (!knows()) {
      content = *last.whole;
    } else {
      // More than one only if this listener was late: the page applies groups one after the other.
      for (const Tick& tick : feed_.ticks_) {
        if (tick.number <= seen_) continue;
        append_json(content.groups, tick.changes->groups);
        append_json(content.dmesg, tick.changes->dmesg);
        append_json(content.stores, tick.changes->stores);
      }
    }
    seen_ = last.number;
  }
  append_json(content.groups, pinned());
  return content.message(last.wall, last.gone);
}

}  // namespace rocefs
