// LookReader: takes looks at a mount: all files in two passes of `get`, but for results of loads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/rocefs-top/look.h"
#include "tools/watch/getter.h"
#include "tools/watch/mount_files.h"

namespace rocefs::top {

// A line of `get`, as a file of a record; nothing of other files.
struct Place {
  Screen screen;
  size_t file;
  std::string key;
};
std::optional<Place> place_of(std::string_view path);
// Patterns of the files of devices, links and queues; of flows and loads.
std::vector<std::string> fabric_patterns();
std::vector<std::string> flow_patterns();

// Puts the texts of lines into the records of a look, which stay sorted.
class LookLines {
 public:
  // `other_files`: the lines are of other files than those of the last call.
  void put(const std::vector<Looks::Line>& lines, bool other_files, Look& look);

 private:
  struct Slot {
    Screen screen;
    size_t record, file;
  };
  void arrange(const std::vector<Looks::Line>& lines, Look& look);

  std::vector<std::optional<Slot>> slots_;  // by line
};

// One thread at a time. A look waits for the mount's daemon as any access to a file does.
class LookReader {
 public:
  // `files` outlives it.
  explicit LookReader(const MountFiles& files);
  // ENOTCONN once the mount or its daemon has ended; then a look never
  // succeeds again. Others may, for example while a worker is replaced.
  Result<Look> look();

 private:
  Result<void> read();
  Result<void> name_ends();
  void read_load_results();

  const MountFiles& files_;
  Getter fabric_, flows_;
  LookLines fabric_lines_, flow_lines_;
  Look last_;
  bool arranged_ = false;  // last_ has records of these files
};

}  // namespace rocefs::top
