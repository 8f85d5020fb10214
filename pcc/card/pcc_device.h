// PccDevice: programmable congestion control of one device: which algorithms there are, which one
// is applied, and whether it runs. It owns the device's windows while it does; what runs the
// algorithms is a PccBackend.
//
// Orders are done one after the other. An order that is refused changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop/engine.h"
#include "core/takeover/shared_memory.h"
#include "core/tree/dmesg.h"
#include "pcc/card/backend.h"
#include "pcc/card/order_queue.h"
#include "pcc/card/pcc_state.h"
#include "pcc/card/program_server.h"
#include "rdma/nic/device.h"

namespace rocefs {

// Control thread.
class PccDevice final : public PccBackend::Listener {
 public:
  struct Parts {
    Device& device;
    Engine& engine;
    // Makes what runs algorithms; null where nothing can.
    std::function<std::unique_ptr<PccBackend>(PccBackend::Listener&)> make_backend;
    // Whether the card's processor can be reached: its error is that of every order to it.
    std::function<Result<void>()> reachable;
    // Ends a program that has claimed the device: release() follows.
    std::function<void(uint64_t program)> revoke;
    std::function<void(LogLevel, const std::string&)> log;
  };

  // Before the engine starts; it outlives the engine's thread. Nothing works before begin().
  explicit PccDevice(Parts parts);
  ~PccDevice() override;

  // The driver takes the device: the built-in algorithms are there, none is applied.
  void begin();
  // The driver has left it, or a reset is under way: whatever is under way fails with `why`, and
  // all is forgotten. The windows are given back when `then` answers.
  void end(const Error& why, Answer<void> then);
  // Something can run algorithms.
  bool works() const { return backend_ != nullptr; }

  // ---- What is so ----

  // Built-in ones first, then in the order in which they were loaded.
  const std::vector<PccAlgorithmInfo>& algorithms() const { return algorithms_; }
  // Null before the first apply().
  const PccAlgorithmInfo* applied() const;
  PccState state() const { return state_; }
  bool active() const { return state_ == PccState::kActive; }
  // Of the run.
  unsigned pollers() const { return pollers_; }
  // Why the last run ended by itself, or what else went wrong by itself; empty after a start.
  const std::string& last_error() const { return last_error_; }
  // Of the last load().
  const std::vector<PccLoaded::File>& load_report() const { return load_report_; }
  // The name of the algorithm that last_control() calls so; - where that is not known.
  std::string_view name_of(unsigned slot) const;
  // A program that sets the windows itself, or may; null where there is none.
  const PccClaims::Program* program() const { return program_ ? &*program_ : nullptr; }
  // Null before there are pages.
  const SharedMemory* signals() const { return device_.registers().signals().get(); }
  // What the owner of the windows says; null while nobody owns them.
  const SharedMemory* control() const {
    return active() || state_ == PccState::kProgramActive ? control_.get() : nullptr;
  }
  // The same, of the last owner when there is none now: null before the first.
  const std::shared_ptr<SharedMemory>& last_control() const { return control_; }
  // `changed` runs when algorithms() or applied() have changed.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }
  // `changed` runs when active() has changed.
  void on_state_change(std::function<void()> changed) { state_changed_ = std::move(changed); }
  const std::string& name() const { return device_.name(); }

  // ---- Orders ----

  // For all queue pairs, those to come too; or for one, while active.
  void apply(const std::string& algorithm, std::optional<uint32_t> qpn, Answer<void> answer);
  void start(unsigned pollers, unsigned interval_us, Answer<void> answer);
  void stop(Answer<void> answer);
  void set_interval(unsigned interval_us, Answer<void> answer);
  // Every plugin of the directory that is not loaded. ENOEXEC when one was refused.
  void load(const std::string& directory, Answer<void> answer);
  void unload(const std::string& algorithm, Answer<void> answer);
  // All of them or none.
  void update(const std::string& algorithm, PccBackend::Assignments changes, Answer<void> answer);
  // Answers when all before it are done.
  void settle(Answer<void> answer);
  // What the card's processor sends back.
  void echo(const std::string& message, Answer<std::string> answer);

  // ---- Of programs, as PccClaims has them ----

  Result<void> claim(const PccClaims::Program& program);
  void run_program(unsigned pollers, Answer<PccClaims::Pages> answer);
  void stop_program(Answer<void> answer);
  void release_program();

  // ---- PccBackend::Listener ----

  void pcc_log(LogLevel level, std::string_view line) override;
  void pcc_died(const std::string& why) override;

 private:
  using TurnPtr = OrderQueue::TurnPtr;
  // The device tells that it leaves; end() follows, and does what there is to do.
  struct Windows final : WindowOwner {
    void windows_lost(Device&) override {}
  };

  const PccAlgorithmInfo* find(std::string_view name) const;
  Result<unsigned> slot_to_unload(const std::string& name) const;
  Result<unsigned> slot_to_update(const std::string& name,
                                  const PccBackend::Assignments& changes) const;
  // Adds an order to the card's processor: refused if that cannot be reached when it is its turn.
  void order(std::function<void(TurnPtr)> act, Answer<void> answer);
  void run(const TurnPtr& turn, unsigned pollers, unsigned interval_us,
           std::shared_ptr<SharedMemory> control);
  void started(const TurnPtr& turn, const PccBackend::Run& run);
  Result<void> may_start() const;
  Result<void> may_claim() const;
  Error claimed_error() const;
  void give_back(const WindowOwner& owner, Answer<void> answer);
  void take_over(std::vector<PccAlgorithmInfo> all);
  void forget();
  // Enters the state that follows `event`. Returns the state before.
  PccState advance(PccEvent event);
  void changed() const {
    if (changed_) changed_();
  }
  void log(LogLevel level, const std::string& what) const;

  Device& device_;
  Engine& engine_;
  const Parts parts_;
  Windows windows_, program_windows_;
  OrderQueue orders_;
  std::unique_ptr<PccBackend> backend_;
  std::vector<PccAlgorithmInfo> algorithms_;
  std::vector<PccLoaded::File> load_report_;
  std::optional<unsigned> applied_;  // slot
  size_t built_ins_ = 0;
  PccState state_ = PccState::kUnbound;
  std::optional<PccClaims::Program> program_;  // in kClaimed and kProgramActive
  bool control_is_programs_ = false;           // control_'s slots are the program's own
  unsigned pollers_ = 1;
  std::shared_ptr<SharedMemory> control_;
  std::string last_error_;
  std::function<void()> changed_, state_changed_;
};

}  // namespace rocefs
