// Privileges of mango-pccd, which runs plugin code: those of the owner of the mount, without
// capabilities.
#pragma once

#include <sys/types.h>

#include <string>

namespace rocefs {

// Changes the single-threaded process to that user, without supplementary groups where permitted,
// and without capabilities, also across exec. Returns an empty string, or the reason of a failure.
std::string become_owner(uid_t uid, gid_t gid);

}  // namespace rocefs
