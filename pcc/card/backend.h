// PccBackend: runs the algorithms of one device: in a process of its own (mango-pccd), or, for
// built-in algorithms under the virtual clock, in the engine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/takeover/shared_memory.h"
#include "core/tree/dmesg.h"
#include "core/tree/file.h"

namespace rocefs {

// An algorithm that can be applied, with its current values.
struct PccAlgorithmInfo {
  unsigned slot = 0;
  std::string name, desc;
  // Names and values as text, in the order of registration.
  std::vector<std::pair<std::string, std::string>> parameters;
};

// Result of loading a directory of plugins.
struct PccLoaded {
  struct File {
    std::string name;    // file name
    std::string loaded;  // name of the algorithm; empty if refused
    std::string reason;  // reason of the refusal
    bool again = false;  // took the place of what was loaded from the file before
  };
  std::vector<File> files;                   // files that were not loaded, or have changed
  std::vector<PccAlgorithmInfo> algorithms;  // all algorithms after the load
};

// Control thread; answers come on it, at once or later. A failed call changes nothing.
class PccBackend {
 public:
  // Receiver of events without an order.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void pcc_log(LogLevel level, std::string_view line) = 0;
    // A run ended by itself, and its process with it; `why` is the reason as text. Loaded plugins
    // are gone; applied algorithms and changed parameters are reset. `named`: the reason says which
    // algorithm or plugin it was.
    virtual void pcc_died(const std::string& why, bool named) = 0;
  };
  virtual ~PccBackend() = default;

  virtual std::vector<PccAlgorithmInfo> built_ins() const = 0;
  // Process that holds plugins; 0 while there is none.
  virtual pid_t pid() const = 0;
  // Loads the plugins that are not loaded or have changed since; with `force` all.
  virtual void load(const std::string& directory, bool force, Answer<PccLoaded> answer) = 0;
  virtual void unload(unsigned slot, Answer<void> answer) = 0;
  // Applies to all queue pairs, or to one. ENOENT: inactive queue pair.
  virtual void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) = 0;
  // Starts a run. The backend owns the device's windows from now on. Pages have open descriptors.
  struct Run {
    std::shared_ptr<SharedMemory> signals, control;
    unsigned pollers = 1;
    unsigned interval_us = 60;
  };
  virtual void start(const Run& run, Answer<void> answer) = 0;
  virtual void stop(Answer<void> answer) = 0;
  // Lets a debugger hold the process that holds plugins: nothing times out while one is attached.
  virtual void set_debug(bool on) = 0;
  virtual void set_interval(unsigned interval_us, Answer<void> answer) = 0;
  // Sets values, given as text; answers all parameters of the slot afterwards.
  using Assignments = std::vector<std::pair<std::string, std::string>>;
  virtual void update(unsigned slot, const Assignments& changes,
                      Answer<PccAlgorithmInfo> answer) = 0;
  // Answers the present values of the slot's parameters, those of the first queue pair that runs
  // it: an algorithm may change them itself. Starts no process, and does not wait long for one.
  virtual void read(unsigned slot, Answer<PccAlgorithmInfo> answer) = 0;
  // Returns to the initial state: ends a run, unloads plugins. Pending answers may be dropped.
  virtual void forget(Answer<void> answer) = 0;
  // Answers lines about what the algorithm of an active queue pair holds, PccController::dump().
  virtual void dump(uint32_t qpn, Answer<std::string> answer) = 0;
  // Sends a message to the card's processor and answers its reply.
  virtual void echo(const std::string& message, Answer<std::string> answer) = 0;
};

}  // namespace rocefs
