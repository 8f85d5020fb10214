// Getter: looks at many files of a mount again and again, through its file `get`.
#pragma once

#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/picture/looks.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

// One thread at a time.
class Getter : public Looks {
 public:
  // `patterns` as of `get`. `files` outlives it.
  Getter(const MountFiles& files, std::vector<std::string> patterns)
      : files_(files), patterns_(std::move(patterns)) {}

  // Takes a look. After an error, for example because the daemon's worker was replaced or the mount
  // has ended, the next look begins with a new open(2); lines() stay.
  Result<void> look();

 private:
  Result<void> read_all(std::string& text);

  const MountFiles& files_;
  const std::vector<std::string> patterns_;
  Fd file_;
};

}  // namespace rocefs
