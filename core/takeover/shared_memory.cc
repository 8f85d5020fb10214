#include "core/takeover/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace rocefs {

Result<SharedMemory> SharedMemory::create(const char* name, size_t size, Others others) {
  SharedMemory memory;
  memory.fd_ = Fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_ || ::ftruncate(memory.fd_.get(), static_cast<off_t>(size)) != 0) {
    return errorf(errno, "shared memory: {}", std::strerror(errno));
  }
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd_.get(), 0);
  if (at == MAP_FAILED) return errorf(errno, "shared memory: {}", std::strerror(errno));
  memory.bytes_ = {static_cast<uint8_t*>(at), size};
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (others == Others::kRead) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(memory.fd_.get(), F_ADD_SEALS, seals) != 0) {
    return errorf(errno, "shared memory cannot be sealed: {}", std::strerror(errno));
  }
  return memory;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace rocefs
