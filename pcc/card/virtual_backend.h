// VirtualBackend: algorithms of a device under the virtual clock. Built-in ones are called in the
// engine at their due times. Plugins stay in mango-pccd; the engine pauses during their calls, so
// that one seed gives one run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop/engine.h"
#include "pcc/card/backend.h"
#include "pcc/card/card_backend.h"
#include "pcc/run/controller.h"

namespace rocefs {

class Device;

// Control thread, except where noted.
class VirtualBackend final : public PccBackend, private PccBackend::Listener {
 public:
  // Before the engine starts; all parameters outlive the engine's thread and the backend.
  VirtualBackend(Engine& engine, Device& device, PollLoop& loop, CardBackend::Options card,
                 PccBackend::Listener& listener);
  // After the engine has stopped.
  ~VirtualBackend() override;

  std::vector<PccAlgorithmInfo> built_ins() const override { return card_.built_ins(); }
  pid_t pid() const override { return card_.pid(); }
  void set_debug(bool on) override { card_.set_debug(on); }
  void load(const std::string& directory, bool force, Answer<PccLoaded> answer) override;
  void unload(unsigned slot, Answer<void> answer) override;
  // Queue pairs of a device are all run by the engine or all by mango-pccd: EOPNOTSUPP for a mix.
  void apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) override;
  void start(const Run& run, Answer<void> answer) override;
  void stop(Answer<void> answer) override;
  void set_interval(unsigned interval_us, Answer<void> answer) override;
  void update(unsigned slot, const Assignments& changes, Answer<PccAlgorithmInfo> answer) override;
  void read(unsigned slot, Answer<PccAlgorithmInfo> answer) override;
  void forget(Answer<void> answer) override;
  void dump(uint32_t qpn, Answer<std::string> answer) override;
  void echo(const std::string& message, Answer<std::string> answer) override;

 private:
  enum class Runner : uint8_t { kNone, kEngine, kCard };
  static Runner runner_of(unsigned slot);

  void pcc_log(LogLevel level, std::string_view line) override;
  void pcc_died(const std::string& why, bool named) override;
  std::unique_ptr<PccController> make_controller();
  void begin_anew(Answer<void> answer);
  void run_by_core(Runner runner, unsigned interval_us, Answer<void> answer);
  void look_then(Answer<void> answer);
  void round(TimeNs now, const Engine::Pause& pause);

  // Core thread.
  void on_time(TimeNs now);
  void look_soon();
  void look_for_events();
  void schedule(TimeNs next);

  Engine& engine_;
  PccBackend::Listener& listener_;
  CardBackend card_;
  Runner applied_ = Runner::kNone;
  Runner runs_ = Runner::kNone;
  Run run_;                   // parameters of the active run
  uint64_t life_ = 0;         // incremented by forget(); older operations do not go on
  Engine::Pause last_round_;  // that in which the process died, until it is dealt with

  const uint64_t seed_;

  // Core thread.
  std::unique_ptr<PccController> controller_;
  Runner running_ = Runner::kNone;
  std::shared_ptr<SharedMemory> signals_, control_;  // of controller_'s run
  Event event_;
  TimeNs next_look_ = 0;  // time of event_ while it is scheduled
  TimeNs looked_at_ = 0;
  TimeNs interval_ = 60 * kMicrosecond;
};

}  // namespace rocefs
