// Copier: has a thread of the client's program move the client's memory (rdma/uapi/copier.h). Core
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
  // The bytes of the memory that it shares with the client.
  static constexpr size_t kBytes =
      sizeof(rocefs_copier_page) + size_t{ROCEFS_COPIER_SLOTS} * ROCEFS_COPIER_SLOT;
  // The longest move.
  static constexpr uint64_t kMaxBytes = uint64_t{ROCEFS_COPIER_SLOTS} * ROCEFS_COPIER_SLOT;

  // What lies together in the client's memory, and its parts here, which stay where they are.
  struct Move {
    bool out;  // of here
    uint64_t address, length;
    std::span<const iovec> here;
  };

  // `memory`: zeroed.
  explicit Copier(std::shared_ptr<SharedMemory> memory);

  // Whether a move would be posted, however long.
  bool has_room(uint64_t length) const;
  // Whether so many bytes are worth a message to another thread, which has cleared up what it left
  // before.
  bool suits(uint64_t bytes) const;
  // There is room. Moves end in the order of their posting.
  void post(const Move& move);
  // Whether there are moves that take() has not told of.
  bool busy() const { return oldest_ != next_; }
  // How the oldest move has ended: whether all its bytes are moved. Nothing: it has not.
  std::optional<bool> take();
  bool has_ended() const { return busy() && !is_open(oldest_); }
  // Takes the moves back that the client has let wait since the last time. They fail.
  void cancel_late();
  // Whatever the client still does: all moves fail.
  void end() { ended_ = true; }

 private:
  // A copy that is posted, of a move or of a piece of it.
  struct Posted {
    PartWalk here;  // where the bytes of a read go
    uint32_t length = 0;
    bool out = false;
    bool last = false;  // of its move
  };

  rocefs_copy& copy(uint32_t number) const { return page_->copies[number % ROCEFS_COPIER_SLOTS]; }
  uint8_t* slot(uint32_t number) const;
  bool is_open(uint32_t number) const;
  void collect();

  const std::shared_ptr<SharedMemory> memory_;
  rocefs_copier_page* const page_;
  uint32_t next_ = 0;      // copy to be posted
  uint32_t oldest_ = 0;    // that is not collected
  uint32_t looked_ = ~0u;  // the oldest of the last look
  bool well_ = true;       // the pieces of the oldest move so far
  bool ended_ = false;
  std::array<Posted, ROCEFS_COPIER_SLOTS> posted_;
};

}  // namespace rocefs
