// Plugins: the algorithms of a card that were loaded from files.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "pcc/card/backend.h"
#include "pcc/run/handle.h"
#include "pcc/run/plugin.h"
#include "tools/mango-pccd/watchdog.h"

namespace rocefs {

// Main thread.
class Plugins {
 public:
  // Both outlive the object.
  Plugins(PccHandle& handle, Watchdog& watchdog) : handle_(handle), watchdog_(watchdog) {}

  // Loads every `*.so` of the directory that is not loaded or has changed since, or with `force`
  // all, in the order of names, after each was tried (trial.h). A refused file is listed with the
  // reason and tried again next time; what was loaded from it before stays. Reasons beyond the size
  // of a message are counted in the last entry. An errno such as ENOENT if the directory cannot be
  // read.
  Result<PccLoaded> load(const std::string& directory, bool force);
  // NOT_FOUND: no plugin in the slot. BUSY: running.
  mango_status_e unload(unsigned slot);

 private:
  // A file as it was when it was loaded.
  struct Version {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    TimeNs modified = 0, changed = 0;
    bool operator==(const Version&) const = default;
    static Version of(const std::string& file);
  };
  struct Loaded {
    std::unique_ptr<PccPlugin> plugin;
    Version version;
  };

  // Loads what was tried; says in `file` what became of it.
  void load_file(const LibraryCopy& library, const Version& version, PccLoaded::File& file);
  Loaded* find(const std::string& file);
  // Whether all algorithms fit into a message, with this one in its slot.
  Result<void> fits(unsigned slot, const PccAlgorithm& algorithm) const;

  PccHandle& handle_;
  Watchdog& watchdog_;
  std::vector<Loaded> plugins_;
};

}  // namespace rocefs
