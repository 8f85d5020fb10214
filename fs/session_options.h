// SessionOptions and TakenOver: parameters of a Session, and the result of its take_over().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/takeover/fault.h"
#include "core/takeover/journal.h"
#include "core/tree/file.h"
#include "fs/invalidator.h"

namespace rocefs {

struct SavedSession;

struct SessionOptions {
  std::string source = "rocefs";           // device shown by mount(8)
  std::vector<std::string> mount_options;  // for libfuse and the kernel: allow_other, ro, dev, …
  bool debug = false;                      // print every request to stderr
  // Called for a refused write, and for an open for writing that the file refused, before the
  // caller sees the errno: so that the reason can be logged. Control thread.
  std::function<void(const std::string& path, const Caller& caller, const Error& why)> refused;
  // Called for an accepted write, and for a change of a node's mode, owner or date, before the
  // caller has the answer. Control thread.
  std::function<void(const std::string&path)> stored, attributes_changed;
  // Called by the file for an accepted write, before the caller sees its end; see Operation.
  // Control thread.
  std::function<void(const std::string& path, std::string_view text, const Caller& caller,
                     std::optional<Moment> applied)>
      accepted;
  // Called when the mount is gone (fusermount3 -u, umount). Control thread.
  std::function<void()> unmounted;
  // State that a session leaves to another process; both or none. They outlive the session.
  Journal* journal = nullptr;
  SavedSession* saved = nullptr;
  Faults* faults = nullptr;  // for tests
  Invalidator invalidator;   // without one, the session starts its own
};

// Result of take_over().
struct TakenOver {
  size_t in_flight = 0;  // requests that were taken and not answered
  bool resent = false;   // requests are sent again; otherwise they have ended with EIO
  size_t open_files = 0;
};

}  // namespace rocefs
