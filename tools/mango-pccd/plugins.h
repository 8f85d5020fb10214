// Plugins: the algorithms of a card that came from files.
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
  // Both outlive it.
  Plugins(PccHandle& handle, Watchdog& watchdog) : handle_(handle), watchdog_(watchdog) {}

  // Every `*.so` of the directory that is not loaded, in order of their names. Those that cannot be
  // are told with the reason, and tried again the next time; those whose reasons a message has no
  // room for are told by their number, in the last entry. ENOENT and the like when the directory
  // cannot be read.
  Result<PccLoaded> load(const std::string& directory);
  // NOT_FOUND: no plugin is there. BUSY: it runs.
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
