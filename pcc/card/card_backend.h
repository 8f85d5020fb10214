// CardBackend: runs the algorithms of a device in a process of its own, mango-pccd, as a NIC runs
// them on its own processor: a crash or a hang stays in that process.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log_limit.h"
#include "core/base/time.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "pcc/card/backend.h"
#include "pcc/card/card_process.h"
#include "pcc/card/messages.h"

namespace rocefs {

// Control thread. The first order that needs the process starts it, also after its end. When it
// ends, or is killed because it misses a deadline or violates the protocol, pending orders fail
// (EIO or ETIMEDOUT), then the listener gets pcc_died(). Messages are untrusted: plugin code may
// have taken over the process. A process with pollers gets an echo order at intervals, which
// detects a hang while no order is pending.
class CardBackend final : public PccBackend, private CardProcess::Listener {
 public:
  struct Options {
    std::string program;  // path of mango-pccd
    std::string device;   // shown in process lists
    uint64_t seed = 1;    // seed of the algorithms' random numbers
    // Time limit of an order, in wall time, unless a debugger is attached to the process;
    // kLoadPatience applies to Load if longer.
    TimeNs patience = 5 * kSecond;
    rlim_t open_files = RLIM_INFINITY;  // soft limit of descriptors
    // User that runs plugin code: the owner of the mount. The process has no capabilities.
    uid_t uid = ::geteuid();
    gid_t gid = ::getegid();
  };
  // Interval of echo orders, in wall time.
  static constexpr TimeNs kPulse = kSecond;
  // Time that a reader waits for the process, in wall time: values that were known last are better
  // than none while it loads, hangs, or is held by a debugger.
  static constexpr TimeNs kReadPatience = kSecond / 2;
  // Loop and listener outlive the backend. Must not be destroyed from its own callbacks.
  CardBackend(PollLoop& loop, Options options, PccBackend::Listener& listener);
  ~CardBackend() override;

  std::vector<PccAlgorithmInfo> built_ins() const override;
  void load(const std::string& directory, bool force, Answer<PccLoaded> answer) override;
  void unload(unsigned slot, Answer<void> answer) override;
  void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) override;
  // Run::pollers 0 is lockstep mode: algorithms are called by round().
  void start(const Run& run, Answer<void> answer) override;
  void stop(Answer<void> answer) override;
  void set_debug(bool on) override;
  void set_interval(unsigned interval_us, Answer<void> answer) override;
  void update(unsigned slot, const Assignments& changes, Answer<PccAlgorithmInfo> answer) override;
  void read(unsigned slot, Answer<PccAlgorithmInfo> answer) override;
  void forget(Answer<void> answer) override;
  void dump(uint32_t qpn, Answer<std::string> answer) override;
  void echo(const std::string& message, Answer<std::string> answer) override;
  // Calls the algorithms that are due at `now`, in turn; answers the time of the next call.
  void round(TimeNs now, Answer<TimeNs> answer);

  pid_t pid() const override { return process_ ? process_->pid() : 0; }

 private:
  static constexpr TimeNs kLoadPatience = 30 * kSecond;
  static constexpr size_t kMaxLine = 1024;
  static constexpr unsigned kMaxUnsolicited = 4096;  // per second; a full socket holds fewer
  struct Waiting {
    std::string verb;
    TimeNs deadline = 0;  // monotonic
    bool loads = false;
    size_t expected = 0;                          // index of the answer's kind
    std::function<bool(const CardAnswer&)> fits;  // true if it can answer this order
    UniqueFunction<void(CardAnswer)> give;        // called with that kind, or an error
  };
  // Read order without an answer, and those who wait for it.
  struct Reading {
    TimeNs deadline = 0;
    std::vector<Answer<PccAlgorithmInfo>> readers;
  };
  using Pages = std::vector<std::shared_ptr<SharedMemory>>;

  template <class Said, class T, class Value>
  void ask(decltype(CardOrder::what) what, Answer<T> answer, Value value,
           std::function<bool(const Said&)> fits = nullptr, Pages pages = {});
  void ask_done(decltype(CardOrder::what) what, Answer<void> answer, Pages pages = {});
  void send(CardOrder order, Waiting waiting, const Pages& pages);
  Result<void> ensure_process();
  void card_said(std::string_view message) override;
  void card_printed(std::string_view line) override;
  bool say_left_out(const std::string& left_out);
  void card_ended(std::string_view how, End end) override;
  bool may_say_more();
  void take_answer(CardAnswer answer);
  void time_out();
  void arm();
  void lose(int code, const std::string& why, bool named = false);
  void give_up_reading();
  void set_pulse(bool on);
  void feel_pulse();
  std::string name() const;

  PollLoop& loop_;
  const Options options_;
  PccBackend::Listener& listener_;
  LoopTimer timer_;
  LoopTimer pulse_;
  bool has_pollers_ = false;
  bool debug_ = false;
  std::unique_ptr<CardProcess> process_;
  std::string last_words_;
  TimeNs unasked_since_ = 0;
  unsigned unsolicited_ = 0;
  LogLimit printed_;
  uint64_t next_id_ = 1;
  LoopTimer read_timer_;
  std::map<unsigned, Reading> readings_;  // by slot; answers in waiting_ end them
  std::map<uint64_t, Waiting> waiting_;
  // During the report of a loss, orders wait until every listener has been called.
  bool telling_ = false;
  std::deque<Task> held_;
};

}  // namespace rocefs
