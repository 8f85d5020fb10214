// CardBackend: the algorithms of a device run in a process of their own, mango-pccd, as those of a
// NIC run on its processor: one that crashes, or does not return, takes nothing with it.
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

#include "core/base/time.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "pcc/card/backend.h"
#include "pcc/card/card_process.h"
#include "pcc/card/messages.h"

namespace rocefs {

// Control thread. The process is started by the first order that needs it, and again by the first
// one after its end. When it ends, or is killed because it does not answer or sends what is no
// answer, the orders that wait fail (EIO, or ETIMEDOUT) and then the listener hears pcc_died().
// What it says is not believed: others' code may have taken its place.
// While it has pollers it is asked for an echo now and then: it may stop when no order waits.
class CardBackend final : public PccBackend, private CardProcess::Listener {
 public:
  struct Options {
    std::string program;  // the path of mango-pccd
    std::string device;   // for whoever lists processes
    uint64_t seed = 1;    // of the algorithms' random numbers
    // For how long an order may go unanswered, in wall time. Plugins are given longer to load.
    TimeNs patience = 5 * kSecond;
    rlim_t open_files = RLIM_INFINITY;  // its soft limit
    // Who runs others' code: the owner of the mount. It has no capabilities either way.
    uid_t uid = ::geteuid();
    gid_t gid = ::getegid();
  };
  // Between an echo and the next, in wall time.
  static constexpr TimeNs kPulse = kSecond;
  // Loop and listener outlive it. It may not be destroyed by what it calls.
  CardBackend(PollLoop& loop, Options options, PccBackend::Listener& listener);
  ~CardBackend() override;

  std::vector<PccAlgorithmInfo> built_ins() const override;
  void load(const std::string& directory, Answer<PccLoaded> answer) override;
  void unload(unsigned slot, Answer<void> answer) override;
  void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) override;
  // Without pollers: in lockstep, by round().
  void start(const Run& run, Answer<void> answer) override;
  void stop(Answer<void> answer) override;
  void set_interval(unsigned interval_us, Answer<void> answer) override;
  void update(unsigned slot, const Assignments& changes, Answer<PccAlgorithmInfo> answer) override;
  void forget(Answer<void> answer) override;
  void echo(const std::string& message, Answer<std::string> answer) override;
  // Calls the algorithms that are due at `now`, one after the other; answers when the next one is.
  void round(TimeNs now, Answer<TimeNs> answer);

  // 0 while there is none.
  pid_t pid() const { return process_ ? process_->pid() : 0; }

 private:
  static constexpr TimeNs kLoadPatience = 30 * kSecond;
  static constexpr size_t kLongestLine = 1024;
  static constexpr unsigned kMostUnasked = 4096;  // a second; a socket that was full has fewer
  struct Waiting {
    std::string verb;
    TimeNs deadline = 0;                          // monotonic
    size_t expected = 0;                          // which of the answers' kinds
    std::function<bool(const CardAnswer&)> fits;  // whether it can be the answer to this order
    UniqueFunction<void(CardAnswer)> give;        // of that kind, or an error
  };
  using Pages = std::vector<std::shared_ptr<SharedMemory>>;

  template <class Said, class T, class Value>
  void ask(decltype(CardOrder::what) what, Answer<T> answer, Value value,
           std::function<bool(const Said&)> fits = nullptr, Pages pages = {});
  void ask_done(decltype(CardOrder::what) what, Answer<void> answer, Pages pages = {});
  void send(CardOrder order, Waiting waiting, const Pages& pages);
  Result<void> ensure_process();
  void card_said(std::string_view message) override;
  void card_ended(std::string_view how, bool by_signal) override;
  bool may_say_more();
  void take_answer(CardAnswer answer);
  void time_out();
  void arm();
  void lose(int code, const std::string& why);
  void set_pulse(bool on);
  void feel_pulse();
  std::string name() const;

  PollLoop& loop_;
  const Options options_;
  PccBackend::Listener& listener_;
  LoopTimer timer_;
  LoopTimer pulse_;
  bool has_pollers_ = false;
  std::unique_ptr<CardProcess> process_;
  std::string last_words_;
  TimeNs unasked_since_ = 0;
  unsigned unasked_ = 0;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Waiting> waiting_;
  // While a loss is told, orders wait until all have heard of it.
  bool telling_ = false;
  std::deque<Task> held_;
};

}  // namespace rocefs
