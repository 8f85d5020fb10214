// Answer<T>: the callback that gets the result of an operation.
#pragma once

#include "core/base/result.h"
#include "core/base/task.h"

namespace rocefs {

// Called exactly once. An answer that is destroyed without a call answers EIO, so that no caller
// waits forever.
template <class T>
using Answer = UniqueFunction<void(Result<T>)>;

}  // namespace rocefs
