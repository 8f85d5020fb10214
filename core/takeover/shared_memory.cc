#include "core/takeover/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace rocefs {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error no_memory() {
  return errorf(errno, "shared memory: {}", std::strerror(errno));
}

Result<Fd> memfd(const char* name, size_t size) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return no_memory();
  return fd;
}

Result<void> seal(const Fd& fd, int seals) {
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) == 0) return {};
  return errorf(errno, "shared memory cannot be sealed: {}", std::strerror(errno));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(const char* name, size_t size, Others others) {
  Result<Fd> fd = memfd(name, size);
  if (!fd) return fd.error();
  Result<SharedMemory> memory = map_part(*fd, 0, size);
  if (!memory) return memory;
  // A mapping that may write has to exist before the seal against it.
  Result<void> sealed = seal(*fd, others == Others::kRead ? kSeals | F_SEAL_FUTURE_WRITE : kSeals);
  if (!sealed) return sealed.error();
  memory->fd_ = std::move(*fd);
  return memory;
}

Result<Fd> SharedMemory::create_file(const char* name, size_t size) {
  Result<Fd> fd = memfd(name, size);
  if (!fd) return fd;
  Result<void> sealed = seal(*fd, kSeals);
  return sealed ? std::move(fd) : Result<Fd>(sealed.error());
}

Result<SharedMemory> SharedMemory::map_part(const Fd& file, size_t offset, size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                    static_cast<off_t>(offset));
  if (at == MAP_FAILED) return no_memory();
  SharedMemory memory;
  memory.bytes_ = {static_cast<uint8_t*>(at), size};
  return memory;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace rocefs
