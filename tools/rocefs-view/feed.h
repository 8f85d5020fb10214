// Feed: looks at a mount at intervals while somebody listens, and tells all listeners what has
// changed, as messages (message.h). Group 2 has the files that a listener has asked for.
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
#include "tools/picture/message.h"
#include "tools/watch/getter.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

// Any thread, but for what is said otherwise.
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
  using ContentPtr = std::shared_ptr<const MessageContent>;
  struct Tick {
    uint64_t number;
    ContentPtr changes;
    ContentPtr whole;  // null: nobody asked for it
    std::string wall, gone;
  };

  void run();
  Tick look(bool whole);
  ContentPtr whole() const;

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
