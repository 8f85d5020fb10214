// Reading and writing of a flow's real files, each as a whole. Control thread.
#pragma once

#include <memory>

#include "core/tree/caller_file.h"
#include "rdma/packet/memory.h"

namespace rocefs {

// Reads an open file. EFBIG beyond kMaxFlowMemory; EINTR where the operation was given up.
void read_input(const CallerFilePtr& file, Answer<std::shared_ptr<LocalMemory>> answer);

// Replaces the file's content by `bytes`, and closes it.
void write_output(const CallerFilePtr& file, std::shared_ptr<LocalMemory> bytes,
                  Answer<void> answer);

}  // namespace rocefs
