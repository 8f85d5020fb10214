#include "tools/rocefs-view/feed.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/clock.h"

namespace rocefs {
namespace {

using namespace std::chrono;

// Files of which all listeners hear. The first group changes only with devices; flows come and go.
const std::vector<std::string> kFabricFiles = {
    "kernel/debug/rocefs/clock/now_ns",
    "kernel/debug/rocefs/clock/mode",
    "kernel/debug/rocefs/links/*/bytes",
    "kernel/debug/rocefs/links/*/lost",
    "kernel/debug/rocefs/links/*/overflowed",
    "kernel/debug/rocefs/links/*/rate",
    "kernel/debug/rocefs/links/*/state",
    "kernel/debug/rocefs/fabric/*/buffer/used",
    "kernel/debug/rocefs/fabric/*/buffer/size",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/bytes",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/marked",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/dropped",
    "kernel/debug/rocefs/fabric/*/ports/*/pfc/*/paused",
    "kernel/debug/rocefs/fabric/*/ports/*/pfc/*/pause_sent",
    "class/infiniband/*/ports/*/hw_counters/np_cnp_sent",
    "class/infiniband/*/ports/*/hw_counters/rp_cnp_handled",
    "class/infiniband/*/ports/*/hw_counters/out_of_sequence",
    "class/infiniband/*/ports/*/hw_counters/packet_seq_err",
    "class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err",
    "class/infiniband/*/ports/*/hw_counters/sr_retrans",
    // Once more at the end: files of one look are read one after the other.
    "kernel/debug/rocefs/clock/now_ns",
};
const std::vector<std::string> kFlowFiles = {
    "kernel/debug/rocefs/traffic/*/state", "kernel/debug/rocefs/traffic/*/result",
    "kernel/debug/rocefs/traffic/*/rate",  "kernel/debug/rocefs/traffic/*/window",
    "kernel/debug/rocefs/loads/*/state",
};
constexpr size_t kPinGroup = 2;
// Messages that are kept for listeners that are late.
constexpr size_t kTicks = 16;
constexpr size_t kFirstLines = 500;  // of a log, for a new listener
constexpr TimeNs kLogInterval = kSecond;
// A log is looked at for at most this part of the time: a long one costs more.
constexpr TimeNs kLogPart = 100;

// Adds a part to the contents of a JSON array.
void append(std::string& contents, std::string_view part) {
  if (!contents.empty() && !part.empty()) contents += ',';
  contents += part;
}

// The last lines of a text, as JSON strings with commas between.
std::string json_lines(std::string_view text, size_t most = SIZE_MAX) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < most) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const size_t begin = text.rfind('\n') + 1;  // 0 if there is none
    lines.push_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::string json;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!json.empty()) json += ',';
    json += json_string(*line);
  }
  return json;
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view new_lines(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return now.substr(before.size());
  // The oldest lines were dropped: the last one that is known is looked for.
  if (before.ends_with('\n')) before.remove_suffix(1);
  const std::string_view last = before.substr(before.rfind('\n') + 1);
  const size_t at = last.empty() ? now.npos : now.rfind(last);
  return at == now.npos ? now : now.substr(std::min(at + last.size() + 1, now.size()));
}

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
  auto content = std::make_shared<Content>();
  Tick tick;
  for (size_t i = 0; i < groups_.size() && tick.gone.empty(); ++i) {
    Getter& group = groups_[i];
    if (Result<void> looked = group.look(); !looked) {
      tick.gone = looked.error().reason;
    } else {
      append(content->groups, group.other_files() ? whole_group(i, group) : changes(i, group));
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
  auto content = std::make_shared<Content>();
  for (size_t i = 0; i < groups_.size(); ++i) append(content->groups, whole_group(i, groups_[i]));
  content->dmesg = dmesg_.last_lines();
  content->stores = stores_.last_lines();
  return content;
}

std::string Feed::whole_group(size_t number, const Getter& getter) {
  std::string paths, values;
  for (const Getter::Line& line : getter.lines()) {
    if (!paths.empty()) paths += ',', values += ',';
    paths += json_string(line.path);
    values += json_string(unescaped(line.text));
  }
  return fmt::format("{{\"g\":{},\"paths\":[{}],\"values\":[{}]}}", number, paths, values);
}

std::string Feed::changes(size_t number, const Getter& getter) {
  std::string changed;
  for (uint32_t i : getter.changed()) {
    if (!changed.empty()) changed += ',';
    changed += fmt::format("{},{}", i, json_string(unescaped(getter.lines()[i].text)));
  }
  return fmt::format("{{\"g\":{},\"c\":[{}]}}", number, changed);
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
  return (all ? whole_group : changes)(kPinGroup, *pins_);
}

std::string Feed::Listener::next() {
  Content content;
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
        append(content.groups, tick.changes->groups);
        append(content.dmesg, tick.changes->dmesg);
        append(content.stores, tick.changes->stores);
      }
    }
    seen_ = last.number;
  }
  append(content.groups, pinned());
  std::string more;
  if (!content.dmesg.empty()) more += fmt::format(",\"dmesg\":[{}]", content.dmesg);
  if (!content.stores.empty()) more += fmt::format(",\"stores\":[{}]", content.stores);
  if (!last.gone.empty()) more += fmt::format(",\"gone\":{}", json_string(last.gone));
  return fmt::format("{{\"wall\":{},\"groups\":[{}]{}}}", last.wall, content.groups, more);
}

}  // namespace rocefs
