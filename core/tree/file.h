// Files: core owns the interface, the layers implement it, fs serves it.
//
// All calls are on the control thread. An answer may be given at once or later, but always on the
// control thread; no handler waits.
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/answer.h"
#include "core/base/result.h"
#include "core/base/task.h"
#include "core/base/time.h"
#include "core/process/identity.h"

namespace rocefs {

// A read or write in progress. An answer given later may come with a way to cancel it:
// `on_interrupt` runs once, on the control thread, when a signal interrupts the waiting caller; the
// caller gets EINTR at once and the late answer is dropped. Set it before read() or write()
// returns, or an earlier signal is missed.
class Operation {
 public:
  enum class Origin : uint8_t { kWriter, kSchedule };  // a write(2), or clock/at
  explicit Operation(Caller caller, Origin origin = Origin::kWriter)
      : caller_(caller), origin_(origin) {}
  // The process that waits for the answer. Its rights are the opener's.
  const Caller& caller() const { return caller_; }
  // Opener of the file; the caller where that is not set.
  const Caller& opener() const { return opener_ ? opener_->caller : caller_; }
  void set_opener(std::shared_ptr<const Opener> opener) { opener_ = std::move(opener); }
  // Rights of the opener; ESRCH if they are not known.
  Result<Rights> rights();
  // Identity with which the operation acts, determined by the first call, which must come while
  // the caller waits: a store that is kept for later calls it on arrival. ESRCH for a scheduled
  // store without set_identity().
  const Result<IdentityPtr>& identity();
  void set_identity(IdentityPtr who) { identity_ = std::move(who); }
  Origin origin() const { return origin_; }
  // Same for a request that is sent again to a worker that took over, otherwise unique; 0: none.
  uint64_t request_id() const { return request_id_; }
  void set_request_id(uint64_t id) { request_id_ = id; }
  // O_NONBLOCK is set on the descriptor now: an operation that would wait answers EAGAIN.
  bool nonblocking() const { return nonblocking_; }
  void set_nonblocking(bool nonblocking) { nonblocking_ = nonblocking; }
  void on_interrupt(Task give_up) { give_up_ = std::move(give_up); }
  bool interruptible() const { return static_cast<bool>(give_up_); }
  // fs calls this when FUSE_INTERRUPT arrives.
  void interrupt() {
    if (Task give_up = std::exchange(give_up_, nullptr)) give_up();
  }

  // Accepted store: `text` without its newline, and its moment in the run if a replay needs it.
  // Called by files before they answer; for the creator of the operation.
  using Accepted = std::function<void(std::string_view text, std::optional<Moment> applied)>;
  void on_accepted(Accepted accepted) { accepted_ = std::move(accepted); }
  void accepted(std::string_view text, std::optional<Moment> applied) const {
    if (accepted_) accepted_(text, applied);
  }

 private:
  Caller caller_;
  Origin origin_;
  std::shared_ptr<const Opener> opener_;
  std::optional<Result<IdentityPtr>> identity_;
  uint64_t request_id_ = 0;
  bool nonblocking_ = false;
  Task give_up_;
  Accepted accepted_;
};
using OperationPtr = std::shared_ptr<Operation>;

// Result of an ioctl(2), and the bytes copied back, also if the result is an errno.
struct IoctlReply {
  int result = 0;  // negative: -errno
  std::string bytes = {};
};

// An open file. Destroyed on release; pending answers are still given by their owners.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  // Reads at most `size` bytes at `offset`; an empty string is the end of the file.
  virtual void read(uint64_t offset, size_t size, const OperationPtr& operation,
                    Answer<std::string> answer) = 0;
  // Takes one write(2) as a whole. Answers the number of bytes taken.
  virtual void write(std::string_view data, const OperationPtr& operation,
                     Answer<size_t> answer) = 0;
  // poll(2) events that hold now. `wake`, if not empty, replaces the earlier one; it is called once
  // when they change, or dropped uncalled if they never do.
  virtual short poll(Task wake) = 0;
  // `argument` has _IOC_SIZE bytes if _IOC_DIR includes a read of it; the reply has at most `room`
  // bytes, the size of the caller's argument. ENOTTY by default.
  virtual void ioctl(uint32_t command, std::string_view argument, size_t room,
                     const OperationPtr& operation, Answer<IoctlReply> answer);
};

// A file's line in the reference.
struct FileDoc {
  std::string_view kind;  // knob, counter, trigger or value
  std::string values;     // values that may be stored; empty if none
  std::string initial;    // initial value of a knob
  std::string_view text;  // empty: undocumented
};

// A file in the tree: a factory of OpenFiles. Shared by the tree and by its open files.
class File {
 public:
  static constexpr size_t kPageSize = 4096;

  virtual ~File() = default;
  virtual bool readable() const = 0;
  virtual bool writable() const = 0;
  // st_size: 4096 for texts, as in sysfs. Not 0, as of seq_file: through the page cache,
  // sendfile(2) and splice(2) would take that for the end, and cat(1) of busybox print nothing.
  virtual uint64_t size() const = 0;
  // st_size while the file is open: of a text that may be longer than a page its length, for
  // readers that look no further, such as less(1) and curl(1). Answers now or later.
  virtual void open_size(Answer<uint64_t> answer) { answer(size()); }
  // Whether lseek(2) supports SEEK_END, which is st_size. Longer texts answer EINVAL, as files of
  // seq_file do: tail(1) would look for the last lines before st_size.
  virtual bool has_end() const { return true; }
  // Initial permission bits: 0644, 0444 or 0200, by readable() and writable().
  virtual mode_t mode() const { return (readable() ? 0444 : 0) | (writable() ? 0200 : 0); }
  // A file that works like a character device: no position, each write(2) is a message, and an open
  // file has state that is lost with the worker: after a takeover it answers ENODEV.
  virtual bool device() const { return false; }
  // Whether stores ask for the credentials of who opened the file: they are kept for it.
  virtual bool keeps_opener() const { return false; }
  virtual Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                                 const Caller& caller) = 0;
  // Takes one write(2), clipped to kPageSize and ended at a NUL byte. Called only when writable().
  virtual void store(std::string_view text, const OperationPtr& operation, Answer<void> answer);
  virtual FileDoc doc() const { return {}; }
  // The node left the tree (its device was removed): open files answer ENODEV from now on.
  virtual void mark_removed() { removed_ = true; }
  bool removed() const { return removed_; }

 private:
  bool removed_ = false;
};

class OpenAttribute;

// Text of at most a page with the semantics of a sysfs attribute: show() runs at offset 0 or on a
// seek, slices of that text are served otherwise; one write(2) is one store.
class Attribute : public File {
 public:
  uint64_t size() const override { return kPageSize; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;

  // The text with its newline. Called only when readable().
  virtual Result<std::string> show() { return errorf(EACCES, "not readable"); }
  // The text for a read(2), now or later: for texts that another thread or process has to say,
  // where show() is the one that it said last.
  virtual void show_present(Answer<std::string> answer) { answer(show()); }

  // True if the text is a setting that is saved, and restored by the worker that takes over after a
  // crash.
  virtual bool saved() const { return false; }
  // Restores a saved setting after a takeover: afterwards the attribute shows `text`.
  virtual void restore(std::string_view text, const OperationPtr& operation, Answer<void> answer) {
    store(text, operation, std::move(answer));
  }

  // The value changed: wakes every poll(POLLPRI) on it, as sysfs_notify() does.
  void notify();
  // Called by every notify().
  void set_change_listener(std::function<void()> changed) { changed_ = std::move(changed); }
  // Wakes pollers too: they get POLLERR.
  void mark_removed() override;

 private:
  friend class OpenAttribute;
  uint64_t version_ = 1;
  std::vector<OpenAttribute*> polled_;  // open attributes with a wake
  std::function<void()> changed_;
};

// Text of any length, fetched whole when it is read from offset 0 and served from that copy.
class Stream : public File {
 public:
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  uint64_t size() const override { return kPageSize; }
  // The page of an empty text stays: it may have grown when it is read.
  void open_size(Answer<uint64_t> answer) override;
  bool has_end() const override { return false; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;
  // Answers now or later.
  virtual void content(Answer<std::string> answer) = 0;
};

}  // namespace rocefs
