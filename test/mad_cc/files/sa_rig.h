// Files of two ports and of sa/, over an engine that does not run: stores are answered at once, and
// the test advances time. The administrator is a carrier that answers after `delay`.
#pragma once

#include <cerrno>
#include <deque>
#include <string>

#include "core/tree/reset.h"
#include "mad_cc/files/limiter_files.h"
#include "mad_cc/files/sa_files.h"

namespace rocefs {

class SaRig final : public MadCarrier {
 public:
  explicit SaRig(std::string_view semantics = "doc") {
    engine = std::move(*Engine::create({ClockMode::kVirtual, 1}, loop));
    for (size_t i = 0; i < 2; ++i) {
      ports.push_back(std::make_unique<MadPort>(*this, scheduler()));
    }
    SaFiles::Parts parts{tree,      *engine, "sa",
                         semantics, {},      [this](const SaSettings& settings) {
                           sa = settings; }};
    for (unsigned number : {1, 2}) {
      parts.ports.push_back({{"mb_0", number}, ports[number - 1].get(), kAdministrator});
    }
    files = std::make_unique<SaFiles>(std::move(parts));
    limiters = std::make_unique<LimiterFiles>(tree, *engine, files->knobs());
    for (unsigned number : {1, 2}) limiters->bind("mb_0", number, *ports[number - 1]);
    ResetParts reset;
    reset.on_core.push_back([this] { files->stop_burst(); });
    reset.counters.push_back([this] {
      for (const auto& port : ports) port->limiter().clear_counters();
    });
    reset.after.push_back([this] { files->forget_burst(); });
    add_reset_file(tree, "debug", *engine, std::move(reset));
  }
  ~SaRig() override { scheduler().cancel(answer_); }

  // Returns `ok`, or EINVAL and the like.
  std::string store(std::string_view path, std::string_view text) {
    reason.clear();
    Tree::Node* node = tree.resolve(path);
    if (!node) return "no file";
    std::string said = "nothing";
    node->file->store(text, std::make_shared<Operation>(Caller{}), [&](Result<void> result) {
      said = "ok";
      if (result) return;
      reason = result.error().reason;
      said = result.error().code == EINVAL   ? "EINVAL"
             : result.error().code == EBUSY  ? "EBUSY"
             : result.error().code == ENODEV ? "ENODEV"
             : result.error().code == ERANGE ? "ERANGE"
                                             : "another";
    });
    return said;
  }
  std::string show(std::string_view path) {
    Tree::Node* node = tree.resolve(path);
    auto* file = node ? dynamic_cast<Attribute*>(node->file.get()) : nullptr;
    return file ? *file->show() : "no file";
  }
  // Returns `max_outstanding queue_size time_sa_mad` of a port of mb_0.
  std::string limits(int number = 1) {
    std::string text;
    for (const char* name : {"max_outstanding", "queue_size", "time_sa_mad"}) {
      text += show(fmt::format("mb_0/mad_sa_cc/{}/{}", number, name));
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  std::string counts(int number = 1) {
    std::string text;
    for (const char* name : {"outstanding", "queued", "sent", "expired", "drops"}) {
      text += show(fmt::format("mb_0/mad_sa_cc/{}/{}", number, name));
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }
  const SaLimiter::Settings& limiter(int number = 1) {
    return ports[static_cast<size_t>(number - 1)]->limiter().settings();
  }
  void pass(TimeNs duration) { scheduler().run_until(scheduler().now() + duration); }
  Scheduler& scheduler() { return engine->scheduler(); }

  static constexpr uint16_t kAdministrator = 1;
  PollLoop loop;
  std::unique_ptr<Engine> engine;  // goes last: what follows has events in its scheduler
  Tree tree{0, 0};
  std::vector<std::unique_ptr<MadPort>> ports;
  std::unique_ptr<SaFiles> files;
  std::unique_ptr<LimiterFiles> limiters;
  SaSettings sa;
  std::string reason;  // of the last refusal
  TimeNs delay = 0;    // kNever: no answer comes
  uint64_t busy = 0;   // so many answers are Busy
  uint64_t transmitted = 0;

 private:
  struct Pending {
    TimeNs due;
    MadReceiver* to;
    mad::Mad mad;
  };
  void transmit(MadReceiver& from, const mad::Address& to, const mad::Mad& mad) override {
    ++transmitted;
    if (delay == kNever || to.lid != kAdministrator || to.qkey != mad::kQkey) return;
    mad::Mad answer = mad;
    answer.set_method(mad::kGetResp);
    if (busy > 0) --busy, answer.set_status(mad::kBusy);
    pending_.push_back({scheduler().now() + delay, &from, answer});
    if (!answer_.scheduled()) scheduler().at(answer_, pending_.front().due);
  }
  void answer(TimeNs now) {
    while (!pending_.empty() && pending_.front().due <= now) {
      Pending one = pending_.front();
      pending_.pop_front();
      mad::Address from;
      from.lid = kAdministrator;
      one.to->receive(from, one.mad);
    }
    if (!pending_.empty()) scheduler().at(answer_, pending_.front().due);
  }

  std::deque<Pending> pending_;
  Event answer_ = event_of<&SaRig::answer>(this);
};

}  // namespace rocefs
