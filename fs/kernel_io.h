// Reading of requests from /dev/fuse and writing of messages to it.
#pragma once

#include <sys/uio.h>

namespace rocefs {

// Equivalents of writev(2) and read(2). Any thread.
ssize_t write_message(int descriptor, iovec* parts, int count);
ssize_t read_request(int descriptor, void* into, size_t size);

}  // namespace rocefs
