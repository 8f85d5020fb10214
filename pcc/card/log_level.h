// Log levels of libmango as those of dmesg.
#pragma once

#include "core/tree/dmesg.h"
#include "pcc/api/libmango.h"

namespace rocefs {

// Unknown levels map to debug.
inline LogLevel log_level_of(mango_log_level_e level) {
  switch (level) {
    case MANGO_LOG_LEVEL_ERROR:
      return LogLevel::kErr;
    case MANGO_LOG_LEVEL_WARN:
      return LogLevel::kWarning;
    case MANGO_LOG_LEVEL_INFO:
      return LogLevel::kInfo;
    case MANGO_LOG_LEVEL_DEBUG:
      break;
  }
  return LogLevel::kDebug;
}

}  // namespace rocefs
