// The real files of flows, read and written as wholes. Any thread that may block.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "core/result.h"
#include "rdma/memory.h"

namespace rocefs {

// `path` is for the reason. EFBIG beyond kMaxFlowMemory, EINTR once it is cancelled.
Result<std::shared_ptr<LocalMemory>> read_input(int fd, const std::string& path,
                                                const std::atomic<bool>& cancelled);

Result<void> write_all(int fd, std::span<const uint8_t> bytes, const std::string& path);

}  // namespace rocefs
