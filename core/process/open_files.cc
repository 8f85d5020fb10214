#include "core/process/open_files.h"

#include <algorithm>

namespace rocefs {

rlim_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  rlimit raised{limit.rlim_max, limit.rlim_max};
  (void)::setrlimit(RLIMIT_NOFILE, &raised);
  return limit.rlim_cur;
}

void limit_open_files(rlim_t soft) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(soft, limit.rlim_cur);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace rocefs
