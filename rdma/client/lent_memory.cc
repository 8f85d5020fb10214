#include "rdma/client/lent_memory.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "rdma/uapi/uapi.h"

namespace rocefs {

Result<void> LentMemory::admit(size_t size, size_t most, const Use& use) {
  if (size <= most - use.bytes) return {};
  return errorf(ENOMEM, "the client shares {} of {} bytes already", use.bytes.load(), most);
}

LentMemory::Memory LentMemory::counted(SharedMemory memory, const UsePtr& use,
                                       Shares::Share share) {
  use->bytes += memory.size();
  ++use->count;
  auto let_go = [use, share = std::move(share)](SharedMemory* gone) {
    use->bytes -= gone->size();
    --use->count;
    delete gone;
  };
  return Memory(new SharedMemory(std::move(memory)), let_go);
}

Result<LentMemory::Memory> LentMemory::lend(const char* name, size_t size, size_t most,
                                            const UsePtr& use, Shares::Share share) {
  if (Result<void> fits = admit(size, most, *use); !fits) return fits.error();
  auto memory = SharedMemory::create(name, size, SharedMemory::Others::kWrite);
  if (!memory) return memory.error();
  return counted(std::move(*memory), use, std::move(share));
}

// Pages are used once: those of a region that is gone may still be mapped in the client.
Result<LentMemory::Pages> LentMemory::pages(size_t size) {
  if (Result<void> fits = admit(size, kMaxRegionBytes, *shared_); !fits) return fits.error();
  if (shared_->count >= ROCEFS_MAX_SHARED) {
    return errorf(ENOMEM, "the client has {} shared regions already", shared_->count.load());
  }
  if (!file_) {
    Result<Fd> file = SharedMemory::create_file("rocefs-region", kMaxFile);
    if (!file) return file.error();
    file_ = std::move(*file);
  }
  // Pages that the client has not given back count, too.
  constexpr uint64_t kBlock = 512;
  struct stat status {};
  ::fstat(file_.get(), &status);
  uint64_t held = static_cast<uint64_t>(status.st_blocks) * kBlock;
  if (held > kMaxRegionBytes - size || next_ > kMaxFile - ROCEFS_SHARED_GAP - size) {
    return Error{ENOMEM, "the client has not given back what it had"};
  }
  auto memory = SharedMemory::map_part(file_, next_, size);
  if (!memory) return memory.error();
  uint64_t offset = std::exchange(next_, next_ + size + ROCEFS_SHARED_GAP);
  return Pages{counted(std::move(*memory), shared_), file_.get(), offset};
}

}  // namespace rocefs
