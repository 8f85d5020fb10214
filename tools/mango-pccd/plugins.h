// Plugins: the algorithms of a card that were loaded from files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
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

  // Loads every `*.so` of the directory that is not loaded, in the order of names. A refused file
  // is listed with the reason and tried again next time; reasons beyond the size of a message are
  // counted in the last entry. An errno such as ENOENT if the directory cannot be read.
  Result<PccLoaded> load(const std::string& directory);
  // NOT_FOUND: no plugin in the slot. BUSY: running.
  mango_status_e unload(unsigned slot);

 private:
  PccLoaded::File load_file(const std::string& directory, const std::string& name);
  bool is_loaded(const std::string& file) const;
  bool fits_in_a_message() const;

  PccHandle& handle_;
  Watchdog& watchdog_;
  std::vector<std::unique_ptr<PccPlugin>> plugins_;
};

}  // namespace rocefs
