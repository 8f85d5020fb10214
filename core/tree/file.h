// The files that the layers show. core owns the interface, the layers implement it, fs serves it.
//
// Everything here runs on the control thread. An answer may be given at once or later, but always
// on the control thread; no handler waits.
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

// One read or write in flight. Whoever keeps an answer back may offer a way to give up early:
// `on_interrupt` runs once, on the control thread, when a signal tells the caller to stop while it
// waits, or kills it; the caller then gets EINTR at once and the late answer is dropped. It is
// offered before read() or write() returns, or a signal that came first is missed.
class Operation {
 public:
  enum class Origin : uint8_t { kWriter, kSchedule };  // a write(2), or clock/at
  explicit Operation(Caller caller, Origin origin = Origin::kWriter)
      : caller_(caller), origin_(origin) {}
  const Caller& caller() const { return caller_; }
  // Whoever keeps the store for later takes the identity when it arrives: the first call, while the
  // caller waits, says who it is for good. ESRCH of a scheduled store that nobody has set it for.
  const Result<IdentityPtr>& identity();
  void set_identity(IdentityPtr who) { identity_ = std::move(who); }
  Origin origin() const { return origin_; }
  // The same when the operation comes again to a worker that took over, and no other's; 0: none.
  uint64_t name() const { return name_; }
  void set_name(uint64_t name) { name_ = name; }
  // O_NONBLOCK is set on the descriptor now: what would wait answers EAGAIN.
  bool nonblocking() const { return nonblocking_; }
  void set_nonblocking(bool nonblocking) { nonblocking_ = nonblocking; }
  void on_interrupt(Task give_up) { give_up_ = std::move(give_up); }
  bool interruptible() const { return static_cast<bool>(give_up_); }
  // fs calls this when FUSE_INTERRUPT arrives.
  void interrupt() {
    if (Task give_up = std::exchange(give_up_, nullptr)) give_up();
  }

  // A store was accepted: `text` without its newline, and where in the run it was applied if a
  // replay of the run needs it. Files tell it before they answer, whoever made the operation hears.
  using Accepted = std::function<void(std::string_view text, std::optional<Moment> applied)>;
  void on_accepted(Accepted accepted) { accepted_ = std::move(accepted); }
  void accepted(std::string_view text, std::optional<Moment> applied) const {
    if (accepted_) accepted_(text, applied);
  }

 private:
  Caller caller_;
  Origin origin_;
  std::optional<Result<IdentityPtr>> identity_;
  uint64_t name_ = 0;
  bool nonblocking_ = false;
  Task give_up_;
  Accepted accepted_;
};
using OperationPtr = std::shared_ptr<Operation>;

// What an ioctl(2) returns and leaves in its argument: the bytes also when the result is an errno.
struct IoctlReply {
  int result = 0;  // negative: -errno
  std::string bytes = {};
};

// An open file. Destroyed on release; answers still owed then are given by their owners.
class OpenFile {
 public:
  virtual ~OpenFile() = default;
  // At most `size` bytes at `offset`; an empty string is the end of the file.
  virtual void read(uint64_t offset, size_t size, const OperationPtr& operation,
                    Answer<std::string> answer) = 0;
  // One write(2), as a whole. Answers how many bytes it took.
  virtual void write(std::string_view data, const OperationPtr& operation,
                     Answer<size_t> answer) = 0;
  // poll(2) events that hold now. `wake`, if not empty, takes the place of the one before; it is
  // called once when they change, or dropped uncalled if they never do.
  virtual short poll(Task wake) = 0;
  // `argument` is what the command's _IOC_SIZE says, if its _IOC_DIR says that it is read; the
  // reply has at most `room` bytes, as many as the caller's argument can take. ENOTTY by default.
  virtual void ioctl(uint32_t command, std::string_view argument, size_t room,
                     const OperationPtr& operation, Answer<IoctlReply> answer);
};

// What the reference says of a file.
struct FileDoc {
  std::string_view kind;  // knob, counter, trigger or value
  std::string values;     // what may be stored; empty where nothing may
  std::string initial;    // of a knob
  std::string_view text;  // empty: nobody has documented it
};

// A file in the tree: a factory of OpenFiles. Shared by the tree and by what is open.
class File {
 public:
  static constexpr size_t kPageSize = 4096;

  virtual ~File() = default;
  virtual bool readable() const = 0;
  virtual bool writable() const = 0;
  // st_size: 4096 for texts, as in sysfs. Never the length of one: that is not known before it is
  // read. And not 0: readers by sendfile(2) and splice(2) would take that for the end.
  virtual uint64_t size() const = 0;
  // Whether lseek(2) knows SEEK_END, which is st_size. Texts that may be longer answer EINVAL, as
  // files of seq_file do: tail(1) would look for the last lines before it.
  virtual bool has_end() const { return true; }
  // Its permission bits at first: 0644, 0444 or 0200 by what it can do.
  virtual mode_t mode() const { return (readable() ? 0444 : 0) | (writable() ? 0200 : 0); }
  // A character device in all but name: it has no position, each write(2) is a message, and what is
  // open has a state that another worker does not have: after a takeover it answers ENODEV.
  virtual bool device() const { return false; }
  virtual Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                                 const Caller& caller) = 0;
  // One write(2), clipped to kPageSize and ended at a NUL byte. Called only when writable().
  virtual void store(std::string_view text, const OperationPtr& operation, Answer<void> answer);
  virtual FileDoc doc() const { return {}; }
  // The node left the tree (its device was removed): what is open answers ENODEV from now on.
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

  // Whether its text is a setting, which can be stored as it is shown: the worker that takes over
  // after a crash does so.
  virtual bool kept() const { return false; }
  // What that worker calls: afterwards the attribute shows `text`, whatever it showed before.
  virtual void restore(std::string_view text, const OperationPtr& operation, Answer<void> answer) {
    store(text, operation, std::move(answer));
  }

  // The value changed: wakes every poll(POLLPRI) on it, as sysfs_notify() does.
  void notify();
  // Told by every notify().
  void set_change_listener(std::function<void()> changed) { changed_ = std::move(changed); }
  // Wakes them too: they see POLLERR.
  void mark_removed() override;

 private:
  friend class OpenAttribute;
  uint64_t version_ = 1;
  std::vector<OpenAttribute*> polled_;  // those with a wake
  std::function<void()> changed_;
};

// Text of any length, taken whole when it is read from offset 0 and served from that copy.
class Stream : public File {
 public:
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  uint64_t size() const override { return kPageSize; }
  bool has_end() const override { return false; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;
  // Now or later.
  virtual void content(Answer<std::string> answer) = 0;
};

}  // namespace rocefs
