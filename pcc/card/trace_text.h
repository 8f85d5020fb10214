// The text of pcc/trace: the changes of windows that the last owner of them has noted, as CSV.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/takeover/shared_memory.h"

namespace rocefs {

// The newest ROCEFS_TRACE_ENTRIES of them, oldest first, below a line of names; that alone where
// `control` is null.
std::string trace_text(const SharedMemory* control,
                       const std::function<std::string_view(unsigned slot)>& name_of);

}  // namespace rocefs
