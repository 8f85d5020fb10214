// IP addresses for people.
#pragma once

#include <string>

#include "rdma/verbs.h"

namespace rocefs {

// As inet_ntop() writes it: 10.77.0.1, 2001:db8::1.
std::string ip_text(const Ip& ip);

}  // namespace rocefs
