// Files that people name in what they store: opened as the writer would open them, with its
// credentials, its root and its working directory, so that the daemon's rights lend it nothing. A
// process of its own has each of them (file_helper.h); nothing here waits for one.
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

// One of them, control thread. Letting go of it ends whatever is under way, and its helper.
//
// Its content goes through slots of memory. Each order is answered once, later, in order: with the
// errno that the writer would get, with ETIMEDOUT when nothing was heard for kPatience (when it is
// not open yet, kOpening: the kernel lets one store at a time into a file of the tree), or with
// what give_up() says; after the last two nothing is ever done again.
class CallerFile : public std::enable_shared_from_this<CallerFile> {
 public:
  static constexpr size_t kSlot = 1 << 20;
  static constexpr size_t kSlots = 8;
  static constexpr TimeNs kPatience = 10 * kSecond, kOpening = 2 * kSecond;

  using Moved = Answer<uint64_t>;  // how many octets

  ~CallerFile();
  CallerFile(const CallerFile&) = delete;
  CallerFile& operator=(const CallerFile&) = delete;

  const std::string& path() const { return path_; }
  // When it was opened.
  uint64_t size() const { return size_; }
  uint8_t* slot(size_t number) const { return memory_->data() + content_at_ + number * kSlot; }
  // Keeps the slots, on any thread.
  std::shared_ptr<const SharedMemory> memory() const { return memory_; }

  // Less than `size` only at the end of the file.
  void read(size_t slot, uint64_t offset, size_t size, Moved answer);
  // What the slot has from `skip` on goes to `offset` + `skip`. Less than `size` if there is room
  // for no more.
  void write(size_t slot, uint64_t offset, size_t skip, size_t size, Moved answer);
  void truncate(Moved answer);
  // The last order: what it answers is what could not be written after all.
  void close(Moved answer);
  void give_up(const Error& why);

 private:
  friend class CallerFiles;
  CallerFile(CallerFiles& owner, std::string path) : owner_(&owner), path_(std::move(path)) {}
  Error failed(const FileReply& reply) const;
  void order(FileOrder order, Moved answer);
  void take_replies();
  TimeNs due() const;

  CallerFiles* owner_;  // null when that has gone
  const std::string path_;
  Fd socket_;  // closed once it is given up
  Error why_{EBADF, "closed"};
  std::shared_ptr<const SharedMemory> memory_;
  size_t content_at_ = 0;
  uint64_t size_ = 0;
  bool open_ = false;
  bool writes_ = false;  // something was written that is not known to be closed
  TimeNs heard_ = 0;     // or asked, when nothing was under way
  std::deque<Moved> owed_;
};
using CallerFilePtr = std::shared_ptr<CallerFile>;

// Control thread.
class CallerFiles {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Starts the agent; from a process with one thread, or little memory, if that is possible. `warn`
  // hears what the writers do not. `loop` outlives it.
  CallerFiles(PollLoop& loop, Say warn);
  // Ends what is under way, unanswered.
  ~CallerFiles();
  CallerFiles(const CallerFiles&) = delete;
  CallerFiles& operator=(const CallerFiles&) = delete;

  // On which no file may lie: the mount itself.
  void set_own_mount(dev_t device) { own_mount_ = device; }

  // `opened` is told once, at once or later: of what the writer would get; EINVAL of what is no
  // regular file, or lies on the mount itself; EPERM where the daemon cannot act as the writer;
  // EAGAIN when too many are open or hang already. A FIFO blocks nothing. Null if it told at once.
  CallerFilePtr open(const IdentityPtr& who, const std::string& path, FileUse use,
                     Answer<void> opened);

  // The mount ends: who is not heard for a shorter while is given up.
  void shorten_timeouts();
  // Waits until what is being written is written, or given up. The loop need not run.
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
