// Work that must not change the calling process, such as joining namespaces.
#pragma once

#include <functional>

#include "core/base/result.h"

namespace rocefs {

// Runs `body` in a child and returns its result. The caller has one thread.
Result<void> in_child(const std::function<Result<void>()>& body);

}  // namespace rocefs
