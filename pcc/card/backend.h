// PccBackend: what runs the algorithms of one device: a process of its own (mango-pccd), or, under
// the virtual clock, the engine itself for those that are built in.
#pragma once

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

// An algorithm that can be applied, as it stands.
struct PccAlgorithmInfo {
  unsigned slot = 0;
  std::string name, desc;
  // Parameters with their values as people write them, in order of registration.
  std::vector<std::pair<std::string, std::string>> parameters;
};

// What a directory of plugins gave.
struct PccLoaded {
  struct File {
    std::string name;    // of the file
    std::string loaded;  // the algorithm's; empty when it was refused
    std::string reason;  // why it was
  };
  std::vector<File> files;                   // those that were not loaded before
  std::vector<PccAlgorithmInfo> algorithms;  // all there are now
};

// Control thread; every answer comes on it, at once or later. What fails changes nothing.
class PccBackend {
 public:
  // What it tells of its own accord.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void pcc_log(LogLevel level, std::string_view line) = 0;
    // A run has ended by itself, and so has whoever ran it: why, for people. Plugins that were
    // loaded are gone; applied algorithms and changed parameters are forgotten.
    virtual void pcc_died(const std::string& why) = 0;
  };
  virtual ~PccBackend() = default;

  virtual std::vector<PccAlgorithmInfo> built_ins() const = 0;
  virtual void load(const std::string& directory, Answer<PccLoaded> answer) = 0;
  virtual void unload(unsigned slot, Answer<void> answer) = 0;
  // For all queue pairs, or one. ENOENT: that one is not active.
  virtual void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) = 0;
  // The windows of the device are its own from now on: the pages, with their descriptors open.
  struct Run {
    std::shared_ptr<SharedMemory> signals, control;
    unsigned pollers = 1;
    unsigned interval_us = 60;
  };
  virtual void start(const Run& run, Answer<void> answer) = 0;
  virtual void stop(Answer<void> answer) = 0;
  virtual void set_interval(unsigned interval_us, Answer<void> answer) = 0;
  // Values as people write them; answers all parameters of the slot as they are then.
  using Assignments = std::vector<std::pair<std::string, std::string>>;
  virtual void update(unsigned slot, const Assignments& changes,
                      Answer<PccAlgorithmInfo> answer) = 0;
  // All is as it was when this was made: a run ends, plugins are gone. What is not answered yet
  // never need be.
  virtual void forget(Answer<void> answer) = 0;
  // What comes back of a message to the card's processor.
  virtual void echo(const std::string& message, Answer<std::string> answer) = 0;
};

}  // namespace rocefs
