// Feed: looks at a mount at intervals while somebody listens, and tells all listeners what has
// changed, as JSON.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/time.h"
#include "tools/watch/getter.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

// `text` as a JSON string with its quotes; octets that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
// Lines that a log has more `now` than `before`; all, if none of before is left.
std::string_view new_lines(std::string_view before, std::string_view now);

// Any thread, but for what is said otherwise.
//
// A message is one line of JSON, an object:
//   wall     time of the look, Unix time in ms
//   groups   of files, each {"g": number of the group, and either
//              "paths": [...], "values": [...]   all files of the group and their texts, or
//              "c": [index, text, ...]}          the texts that have changed}
//   dmesg, stores   [...] new lines of dmesg and of clock/log
//   gone     why the mount could not be looked at
class Feed {
 public:
  // `files` outlives it. `ended` is called on the feed's thread when the mount has ended, after
  // listeners were told.
  Feed(const MountFiles& files, TimeNs interval, std::function<void()> ended);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // A listener on a thread of its own. The first message has all files, as has one after the
  // listener was too slow for all messages.
  class Listener {
   public:
    // `pins`: paths or patterns of further files, a group of this listener's own. Those that are
    // not there are looked for again now and then.
    Listener(Feed& feed, std::vector<std::string> pins);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    // Waits for the next message. Empty when the feed ends.
    std::string next();

   private:
    std::string pinned();
    void choose_pins();

    Feed& feed_;
    const std::vector<std::string> wanted_;
    std::optional<Getter> pins_;  // of those that are there
    bool some_missing_ = false;
    TimeNs look_again_ = 0;  // for those that are not
    bool all_pins_ = true;   // the next message has all of them
    uint64_t seen_ = 0;
  };

  // Lets all listeners end.
  void stop();

 private:
  // Lines of a log that grows, of which the oldest are dropped.
  struct Log {
    std::string path;
    std::string text = {};
    TimeNs due = 0;
    // New lines, as JSON strings with commas between.
    std::string news(const MountFiles& files, TimeNs now);
    // The last lines in that form.
    std::string last_lines() const;
  };
  // Contents of a message's arrays.
  struct Content {
    std::string groups, dmesg, stores;
  };
  using ContentPtr = std::shared_ptr<const Content>;
  struct Tick {
    uint64_t number;
    ContentPtr changes;
    ContentPtr whole;  // null: nobody asked for it
    std::string wall, gone;
  };

  void run();
  Tick look(bool whole);
  ContentPtr whole() const;
  static std::string whole_group(size_t number, const Getter& getter);
  static std::string changes(size_t number, const Getter& getter);

  const MountFiles& files_;
  const TimeNs interval_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Getter> groups_;  // of thread_, as are the logs
  Log dmesg_, stores_;
  std::deque<Tick> ticks_;  // the newest ones
  bool wants_whole_ = false;
  uint64_t number_ = 0;
  size_t listeners_ = 0;
  bool stopping_ = false;
  const std::function<void()> ended_;
  std::thread thread_;
};

}  // namespace rocefs
