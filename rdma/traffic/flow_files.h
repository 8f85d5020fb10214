// The real files of flows, read and written as wholes. Control thread.
#pragma once

#include <memory>

#include "core/tree/caller_file.h"
#include "rdma/packet/memory.h"

namespace rocefs {

// Of a file that is open. EFBIG beyond kMaxFlowMemory; what was given up says so.
void read_input(const CallerFilePtr& file, Answer<std::shared_ptr<LocalMemory>> answer);

// Puts `bytes` in the place of what the file held, and closes it.
void write_output(const CallerFilePtr& file, std::shared_ptr<LocalMemory> bytes,
                  Answer<void> answer);

}  // namespace rocefs
