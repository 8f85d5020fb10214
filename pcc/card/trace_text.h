// Text of pcc/trace: window changes noted by the last owner of the windows, as CSV.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/takeover/shared_memory.h"

namespace rocefs {

// Header line and the newest ROCEFS_TRACE_ENTRIES entries, oldest first; the header alone if
// `control` is null.
std::string trace_text(const SharedMemory* control,
                       const std::function<std::string_view(unsigned slot)>& name_of);

}  // namespace rocefs
