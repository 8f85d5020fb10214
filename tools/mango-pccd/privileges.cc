#include "tools/mango-pccd/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rocefs {
namespace {

constexpr int kMaxCapabilities = 64;

std::string failure(std::string_view what) {
  return fmt::format("it cannot {}: {}", what, std::strerror(errno));
}

bool set_capabilities(const __user_cap_data_struct (&data)[2]) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capset, &header, data) == 0;
}

// Empties the bounding set, which exec cannot refill. A process without CAP_SETPCAP has no
// capability to drop.
void empty_bounding_set() {
  for (int one = 0; one < kMaxCapabilities; ++one) {
    if (::prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0 && errno == EINVAL) return;
  }
}

// Changes user and groups. An unprivileged user cannot drop supplementary groups: they are those of
// the owner.
std::string become(uid_t uid, gid_t gid) {
  bool other = uid != ::geteuid() || uid != ::getuid();
  bool alone = ::setgroups(0, nullptr) == 0;
  if (!alone && other) return failure("give up its groups");
  if (::setresgid(gid, gid, gid) != 0 && other) return failure(fmt::format("be of group {}", gid));
  if (::setresuid(uid, uid, uid) != 0) return failure(fmt::format("become user {}", uid));
  return "";
}

}  // namespace

std::string become_owner(uid_t uid, gid_t gid) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failure("give up new privileges");
  empty_bounding_set();
  std::string why = become(uid, gid);
  if (!why.empty()) return why;
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  constexpr __user_cap_data_struct kNone[2]{};
  if (!set_capabilities(kNone)) return failure("give up its capabilities");
  return "";
}

}  // namespace rocefs
