// Files that users name in a store: opened as who opened the descriptor would, with its
// credentials, root and working directory, so that the daemon's rights give no access. Each is
// opened in a separate process (file_helper.h); the control thread waits for none.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/process/file_agent.h"
#include "core/process/file_helper.h"
#include "core/process/identity.h"
#include "core/takeover/shared_memory.h"
#include "core/tree/file.h"

namespace rocefs {

class CallerFiles;

// An open file of a writer. Control thread. Destroying it ends its orders and its helper.
//
// Content passes through slots of shared memory. Each order is answered once, later, in order: with
// the writer's errno, with ETIMEDOUT when the helper was silent for kPatience (kOpening until the
// file is open: the kernel admits one store at a time to a file of the tree), or with the error of
// give_up(). After the last two the file is dead.
class CallerFile : public std::enable_shared_from_this<CallerFile> {
 public:
  static constexpr size_t kSlot = 1 << 20;
  static constexpr size_t kSlots = 8;
  static constexpr TimeNs kPatience = 10 * kSecond, kOpening = 2 * kSecond;

  using Moved = Answer<uint64_t>;  // number of octets

  ~CallerFile();
  CallerFile(const CallerFile&) = delete;
  CallerFile& operator=(const CallerFile&) = delete;

  const std::string& path() const { return path_; }
  // Size when it was opened.
  uint64_t size() const { return size_; }
  uint8_t* slot(size_t number) const { return memory_->data() + content_at_ + number * kSlot; }
  // Keeps the slots alive; any thread.
  std::shared_ptr<const SharedMemory> memory() const { return memory_; }

  // Moves less than `size` only at the end of the file.
  void read(size_t slot, uint64_t offset, size_t size, Moved answer);
  // Writes the slot's octets from `skip` on to `offset` + `skip`. Moves less than `size` if the
  // file system is full.
  void write(size_t slot, uint64_t offset, size_t skip, size_t size, Moved answer);
  void truncate(Moved answer);
  // The last order: answers with errors of delayed writes.
  void close(Moved answer);
  void give_up(const Error& why);

 private:
  friend class CallerFiles;
  CallerFile(CallerFiles& owner, std::string path) : owner_(&owner), path_(std::move(path)) {}
  Error failed(const FileReply& reply) const;
  void order(FileOrder order, Moved answer);
  void take_replies();
  TimeNs due() const;

  CallerFiles* owner_;  // null once the owner is gone
  const std::string path_;
  Fd socket_;  // closed after give_up()
  Error why_{EBADF, "closed"};
  std::shared_ptr<const SharedMemory> memory_;
  size_t content_at_ = 0;
  uint64_t size_ = 0;
  bool open_ = false;
  bool writes_ = false;  // written since the file was last known to be closed
  TimeNs heard_ = 0;     // time of the last reply, or of the first order after that
  std::deque<Moved> owed_;
};
using CallerFilePtr = std::shared_ptr<CallerFile>;

// Control thread.
class CallerFiles {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Starts the agent, from a process with one thread or little memory if possible. `warn` logs
  // errors that no writer gets. `loop` outlives this object.
  CallerFiles(PollLoop& loop, Say warn);
  // Ends all orders, unanswered.
  ~CallerFiles();
  CallerFiles(const CallerFiles&) = delete;
  CallerFiles& operator=(const CallerFiles&) = delete;

  // Device number of the mount itself, on which no file may be opened.
  void set_own_mount(dev_t device) { own_mount_ = device; }

  // Calls `opened` once, at once or later: with the errno that the writer would get; EINVAL unless
  // it is a regular file outside the mount; EPERM where the daemon cannot act as the writer; EAGAIN
  // when too many files are open or hang. A FIFO does not block. Null if `opened` was called at
  // once.
  CallerFilePtr open(const IdentityPtr& who, const std::string& path, FileUse use,
                     Answer<void> opened);

  // Shortens all time-outs, because the mount ends.
  void shorten_timeouts();
  // Waits until all writes have ended or are given up. The loop need not run.
  void finish();

 private:
  friend class CallerFile;
  int send(const Identity& who, int socket, int memory);
  Result<void> prepare(CallerFile& file, const Identity& who, FileUse use);
  bool start();
  std::vector<CallerFilePtr> shared() const;
  void take_end();
  void look_for_late();
  void arm();

  PollLoop& loop_;
  Say warn_;
  std::optional<FileAgent> agent_;
  std::optional<dev_t> own_mount_;
  std::set<CallerFile*> files_;
  TimeNs patience_ = CallerFile::kPatience;
  LoopTimer timer_;
  bool armed_ = false;
};

}  // namespace rocefs
