// Copier: lets a thread of the client's program move the client's memory (rdma/uapi/copier.h). Core
// thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/part_walk.h"
#include "core/takeover/shared_memory.h"
#include "rdma/uapi/copier.h"

namespace rocefs {

class Copier {
 public:
  // Size of the memory shared with the client.
  static constexpr size_t kBytes =
      sizeof(rocefs_copier_page) + size_t{ROCEFS_COPIER_SLOTS} * ROCEFS_COPIER_SLOT;
  // The longest move.
  static constexpr uint64_t kMaxBytes = uint64_t{ROCEFS_COPIER_SLOTS} * ROCEFS_COPIER_SLOT;

  // A contiguous range of the client's memory, and its parts here, which stay in place.
  struct Move {
    bool out;  // from here to the client
    uint64_t address, length;
    std::span<const iovec> here;
  };

  // `memory`: zeroed.
  explicit Copier(std::shared_ptr<SharedMemory> memory);

  // Whether a move of `length` bytes can be posted.
  bool has_room(uint64_t length) const;
  // Whether `bytes` are worth a message to the other thread, and it has freed its cancelled slots.
  bool suits(uint64_t bytes) const;
  // There must be room. Moves end in the order of posting.
  void post(const Move& move);
  // Whether there are moves that take() has not returned.
  bool busy() const { return oldest_ != next_; }
  // Result of the oldest move: whether all its bytes are moved. Empty: not ended.
  std::optional<bool> take();
  bool has_ended() const { return busy() && !is_open(oldest_); }
  // Cancels moves that the client has not begun since the last call. They fail.
  void cancel_late();
  // All moves fail from now on.
  void end() { ended_ = true; }

 private:
  // A posted copy: a move or a piece of one.
  struct Posted {
    PartWalk here;  // destination of a read's bytes
    uint32_t length = 0;
    bool out = false;
    bool last = false;  // last piece of its move
  };

  rocefs_copy& copy(uint32_t number) const { return page_->copies[number % ROCEFS_COPIER_SLOTS]; }
  uint8_t* slot(uint32_t number) const;
  bool is_open(uint32_t number) const;
  void collect();

  const std::shared_ptr<SharedMemory> memory_;
  rocefs_copier_page* const page_;
  uint32_t next_ = 0;      // next copy to post
  uint32_t oldest_ = 0;    // oldest copy not collected
  uint32_t looked_ = ~0u;  // oldest copy at the last look
  bool well_ = true;       // all pieces of the oldest move so far succeeded
  bool ended_ = false;
  std::array<Posted, ROCEFS_COPIER_SLOTS> posted_;
};

}  // namespace rocefs
