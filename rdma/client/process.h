// Process: the process of a verbs client, and the copy thread that moves its memory. The engine
// asks and is told later, so that memory that blocks for ever stalls nobody but its owner.
//
// The thread has no more rights than the client: it takes its user and groups, so that a program
// that the client becomes by exec(2) is as safe from it as from the client itself.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/engine.h"
#include "core/fd.h"
#include "core/result.h"
#include "rdma/memory.h"

namespace rocefs {

struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;

  // Root, and the daemon's own user: the device is theirs.
  bool privileged() const;
};

class Process {
 public:
  // What one call moves at most. A call costs as much as some 64 KiB.
  static constexpr size_t kChunk = 512 * 1024;
  // What should be asked for before it is handed over, if more comes soon.
  static constexpr size_t kLump = kChunk / 2;
  // Bytes that it takes a while to move.
  static constexpr uint64_t kMuch = 16 * 1024;

  // Control thread. `pidfd` becomes readable when the process has died. The thread ends when nobody
  // holds the process any more and nothing is left to do; the engine outlives its last answer. Null
  // if there is no thread to be had.
  static std::shared_ptr<Process> create(const Credentials& who, Fd pidfd, Engine& engine);
  // The same for who has but one thread, as a fuzzer does: work_now() does what flush() handed
  // over.
  static std::shared_ptr<Process> create_threadless(const Credentials& who, Fd pidfd,
                                                    Engine& engine);
  void work_now();
  ~Process();

  const Credentials& credentials() const { return who_; }
  int pidfd() const { return pidfd_.get(); }

  // Core thread. What is asked is done in this order; the listener is told by take_done(). Spans
  // and `original` live until then.
  void read(uint64_t address, std::span<uint8_t> into, MemoryListener& listener, uint64_t ticket);
  void write(uint64_t address, std::span<const uint8_t> from, MemoryListener& listener,
             uint64_t ticket);
  void atomic(uint64_t address, const AtomicOperation& operation, uint64_t& original,
              MemoryListener& listener, uint64_t ticket);
  // Runs `work` on the copy thread after all that was asked before, and what it returns, if
  // anything, on the core.
  using Work = UniqueFunction<Task()>;
  void run(Work work);
  // Sends a message of at most 16 bytes to a socket that adopt() has taken. False, and it is lost,
  // when too many wait for memory of the client's that blocks; when too many wait for room in the
  // socket it is lost later, and forget_events() knows of it.
  bool send(uint32_t socket, std::span<const uint8_t> message);
  void close_socket(uint32_t socket);
  // Any thread. False once it is closed, by us or at its other end.
  bool has_socket(uint32_t socket);
  // Any thread. How many are not closed; while the client's memory blocks, none is.
  size_t socket_count();
  // Hands over what was asked since the last time.
  void flush();
  uint64_t asked_bytes() const { return asked_bytes_; }
  // For how long what was handed over has waited for a thread that had nothing else to do.
  TimeNs lag() const;
  // Whether flush() or take_done() has something to do.
  bool busy() const { return !asked_.empty() || has_done(); }
  bool has_done() const { return has_done_.load(std::memory_order_seq_cst); }
  // Tells who asked; whether there was any.
  bool take_done();

  // Control thread. A descriptor from the client, which only the copy thread may use or close: both
  // could block. It is a socket's number from then on.
  uint32_t adopt(Fd fd);

  // Any thread. From now on nothing of the client is touched: what is asked fails.
  void end() { ended_.store(true); }
  // Expires when the thread has ended.
  std::weak_ptr<Process> thread() const { return thread_; }
  // Whether the thread has nothing to do. After end() it soon has, unless the client's memory
  // blocks.
  bool idle() const { return idle_.load(); }

  // Copy thread. Whether `address` holds this number: whether the process may be read at all.
  bool holds(uint64_t address, uint32_t number) const;
  // Copy thread. Takes back the events of `cookie` for which there was no room in their sockets,
  // and tells of those that were lost for that.
  struct Unsent {
    uint32_t completions = 0;
    uint32_t asynchronous = 0;
  };
  Unsent forget_events(uint64_t cookie);
  // Copy thread. Whether each page of these bytes can be read; they are populated.
  bool populated(uint64_t address, uint64_t length) const;

 private:
  // What is asked of the thread: most are moves, which are kept small.
  struct Extra {
    AtomicOperation operation;
    std::array<uint8_t, 16> message{};
    Fd fd;
    Work work;
  };
  struct Job {
    enum class Kind : uint8_t { kRead, kWrite, kAtomic, kRun, kSend, kAdopt, kClose };
    Kind kind = Kind::kRun;
    bool ok = false;
    uint32_t length = 0;
    uint64_t address = 0;  // or the socket's number
    uint8_t* local = nullptr;
    MemoryListener* listener = nullptr;
    uint64_t ticket = 0;
    std::unique_ptr<Extra> extra;
  };
  struct Done {
    MemoryListener* listener;  // null: there is a task instead
    uint64_t ticket;
    bool ok;
    Task after;
  };
  struct EventSocket {
    Fd fd;
    std::deque<std::pair<std::array<uint8_t, 16>, size_t>> waiting;  // for room in it
  };
  static constexpr size_t kMaxWaiting = 4096;
  static constexpr size_t kMaxLost = 4 * kMaxWaiting;  // objects whose losses are kept in mind

  Process(const Credentials& who, Fd pidfd, Engine& engine);
  void run_thread();
  void work_loop();
  void work(std::span<Job> batch, std::vector<Done>& done);
  void hand_back(std::vector<Done>& done);
  size_t move(std::span<Job> batch);
  bool move_one(const Job& job) const;
  ssize_t transfer(Job::Kind kind, std::span<const iovec> local,
                   std::span<const iovec> remote) const;
  bool change(const Job& job) const;
  // False when its other end has closed it.
  bool send_now(EventSocket& socket);
  void note_lost(const Job& job);
  void sweep_sockets();
  void close_now(uint32_t socket);
  bool alive() const;
  void submit(Job job);
  void finish();

  std::weak_ptr<Process> thread_;
  const Credentials who_;
  const Fd pidfd_;
  Engine& engine_;
  std::vector<Job> asked_;    // core thread
  uint64_t asked_bytes_ = 0;  // in them
  std::vector<Done> taken_;   // core thread

  std::mutex mutex_;  // for the four that follow; held for moments only
  std::condition_variable changed_;
  std::set<uint32_t> open_;  // the sockets that are not closed
  std::vector<Job> jobs_;
  std::vector<Done> done_;

  std::atomic<bool> has_jobs_{false};
  std::atomic<bool> has_done_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> idle_{true};
  std::atomic<bool> waiting_{false};
  // When the thread was given work while it waited for some; 0 since it has taken it.
  std::atomic<TimeNs> given_{0};
  std::atomic<size_t> unsent_{0};            // messages that the copy thread has not seen
  uint32_t next_socket_ = 1;                 // control thread
  std::map<uint32_t, EventSocket> sockets_;  // copy thread
  size_t backlog_ = 0;                       // of all sockets
  std::map<uint64_t, Unsent> lost_;          // copy thread; events by cookie
  uint64_t moved_ = 0;                       // bytes, of the last batch
};

}  // namespace rocefs
