// Command line of rocefs-view.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace rocefs {

extern const char* const kViewUsage;

struct ViewOptions {
  bool help = false, version = false;
  std::string mount_point;
  std::string address = "127.0.0.1";
  uint16_t port = 8470;  // 0: a free one
  bool read_only = false;
  std::string record, replay;            // files; empty: none
  TimeNs interval = 200 * kMillisecond;  // between two looks
};

Result<ViewOptions> parse_view(int argc, char** argv);

}  // namespace rocefs
