// LentMemory: the memory that the engine shares with one client, within limits. Control thread; the
// memory may be freed on any thread, also after this object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/shares.h"
#include "core/takeover/shared_memory.h"

namespace rocefs {

class LentMemory {
 public:
  using Memory = std::shared_ptr<SharedMemory>;

  // A memfd for queues, or for device memory. ENOMEM or EMFILE. `share`: of the client's user in
  // the memory of queues, kept as long as the memory.
  Result<Memory> queues(size_t size, Shares::Share share) {
    return lend("rocefs-queue", size, kMaxQueueBytes, queues_, std::move(share));
  }
  Result<Memory> device_memory(size_t size) {
    return lend("rocefs-region", size, kMaxRegionBytes, device_);
  }
  // New pages of the memfd of all shared regions.
  struct Pages {
    Memory memory;
    int file = -1;  // this object's
    uint64_t offset = 0;
  };
  Result<Pages> pages(size_t size);

 private:
  static constexpr size_t kMaxQueueBytes = size_t{1} << 30;   // two large CQs
  static constexpr size_t kMaxRegionBytes = size_t{4} << 30;  // of each kind
  static constexpr size_t kMaxFile = size_t{1} << 62;  // all pages that it has ever had, and gaps

  struct Use {
    std::atomic<size_t> bytes{0};
    std::atomic<size_t> count{0};
  };
  using UsePtr = std::shared_ptr<Use>;

  static Result<void> admit(size_t size, size_t most, const Use& use);
  static Memory counted(SharedMemory memory, const UsePtr& use, Shares::Share share = nullptr);
  static Result<Memory> lend(const char* name, size_t size, size_t most, const UsePtr& use,
                             Shares::Share share = nullptr);

  const UsePtr queues_ = std::make_shared<Use>();
  const UsePtr device_ = std::make_shared<Use>();
  const UsePtr shared_ = std::make_shared<Use>();
  Fd file_;
  size_t next_ = 0;  // offset of the first page that no region has had
};

}  // namespace rocefs
