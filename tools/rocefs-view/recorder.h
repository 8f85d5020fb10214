// Recorder: what the page is told of a mount, in a file (tools/picture/recording.h). The page can
// play it later.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/rocefs-view/feed.h"
#include "tools/rocefs-view/page_server.h"

namespace rocefs {

// Writes a recording until it is destroyed or the feed ends. A message is in the file, whole, when
// the next look begins.
class Recorder {
 public:
  // Creates the file, or empties it. `feed` outlives it, and ends first.
  static Result<std::unique_ptr<Recorder>> begin(const std::string& file, const std::string& shape,
                                                 Feed& feed);
  ~Recorder() { thread_.join(); }

 private:
  Recorder(std::string name, Fd file, Feed& feed);
  void run(Feed& feed);

  const std::string name_;
  const Fd file_;
  std::thread thread_;
};

// Adds the routes of a page that plays a recording: /api/shape, its first line, and /api/recording,
// the rest. EINVAL if the file is no recording.
Result<void> add_replay(PageServer& server, const std::string& file);

}  // namespace rocefs
