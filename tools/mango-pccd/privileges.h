// What mango-pccd runs others' code as: the owner of the mount, who may do nothing more than that
// user may.
#pragma once

#include <sys/types.h>

#include <string>

namespace rocefs {

// This process, which has one thread, becomes that user, without supplementary groups where it may
// give them up, and without any capability, now and through whatever it executes. Nothing is
// returned when it is so, else why it is not.
std::string become_owner(uid_t uid, gid_t gid);

}  // namespace rocefs
