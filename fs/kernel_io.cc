#include "fs/kernel_io.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace rocefs {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

// Raw system calls, because those of libc are cancellation points. Short messages are copied into
// one piece: the kernel pins each piece separately.
ssize_t write_message(int fd, iovec* parts, int count) {
  if (count == 1) return ::syscall(SYS_write, fd, parts[0].iov_base, parts[0].iov_len);
  alignas(kPage) char message[kPage];
  size_t length = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > sizeof message - length) {
      return ::syscall(SYS_writev, fd, parts, count);
    }
    std::memcpy(message + length, parts[i].iov_base, parts[i].iov_len);
    length += parts[i].iov_len;
  }
  return ::syscall(SYS_write, fd, message, length);
}

ssize_t read_request(int fd, void* into, size_t size) {
  return ::syscall(SYS_read, fd, into, size);
}

}  // namespace rocefs
