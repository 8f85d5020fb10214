// PccDevice: programmable congestion control of one device: known algorithms, the applied one, the
// run. Owns the device's windows during a run; a PccBackend runs the algorithms.
//
// Orders are executed one at a time. A refused order changes nothing.
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
#include "pcc/card/log_budget.h"
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
    // Creates the backend; null if the device has none.
    std::function<std::unique_ptr<PccBackend>(PccBackend::Listener&)> make_backend;
    // Error if the card's processor cannot be reached; every order to it fails with that error.
    std::function<Result<void>()> reachable;
    // Ends the claim of a program: release_program() follows.
    std::function<void(uint64_t program)> revoke;
    std::function<void(LogLevel, const std::string&)> log;
  };

  // Before the engine starts; outlives the engine's thread. Orders fail before begin().
  explicit PccDevice(Parts parts);
  ~PccDevice() override;

  // The driver binds the device: built-in algorithms are known, none is applied.
  void begin();
  // The driver unbinds the device, or a reset begins: pending orders fail with `why`, and all state
  // is reset. The windows have been returned when `then` is called.
  void end(const Error& why, Answer<void> then);
  // True if the device has a backend.
  bool works() const { return backend_ != nullptr; }

  // ---- State ----

  // Built-in algorithms first, then plugins in the order of loading.
  const std::vector<PccAlgorithmInfo>& algorithms() const { return algorithms_; }
  // Process that holds the device's plugins; 0 while there is none.
  pid_t card_pid() const { return works() ? backend_->pid() : 0; }
  // Null before the first apply().
  const PccAlgorithmInfo* applied() const;
  PccState state() const { return state_; }
  bool active() const { return state_ == PccState::kActive; }
  // Pollers of the run.
  unsigned pollers() const { return pollers_; }
  // Reason why the last run ended by itself, or of another spontaneous failure; empty after a
  // start.
  const std::string& last_error() const { return last_error_; }
  // Files of the last load().
  const std::vector<PccLoaded::File>& load_report() const { return load_report_; }
  // Name of the algorithm in a slot of last_control(), or "-" if unknown.
  std::string_view name_of(unsigned slot) const;
  // Program that has claimed the device, or null.
  const PccClaims::Program* program() const { return program_ ? &*program_ : nullptr; }
  // Null before the register pages exist.
  const SharedMemory* signals() const { return device_.registers().signals().get(); }
  // Control page of the current owner of the windows, or null.
  const SharedMemory* control() const {
    return active() || state_ == PccState::kProgramActive ? control_.get() : nullptr;
  }
  // Control page of the current or last owner; null before the first.
  const std::shared_ptr<SharedMemory>& last_control() const { return control_; }
  // Calls of algorithms in that page that took too long, as the card has counted them.
  uint32_t slow_calls() const;
  // Sets the callback for changes of algorithms() or applied().
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }
  // Sets the callback for changes of the state's text.
  void on_state_change(std::function<void()> changed) { state_changed_ = std::move(changed); }
  const std::string& name() const { return device_.name(); }

  // ---- Orders ----

  // Applies to all present and future queue pairs, or to one, which needs an active run. `none`,
  // for all: none is applied then; EBUSY while PCC is active.
  void apply(const std::string& algorithm, std::optional<uint32_t> qpn, Answer<void> answer);
  void start(unsigned pollers, unsigned interval_us, Answer<void> answer);
  // EBUSY while a program has claimed the device.
  void stop(Answer<void> answer);
  void set_interval(unsigned interval_us, Answer<void> answer);
  // Lets a debugger hold the process of the plugins.
  void set_debug(bool on) {
    if (works()) backend_->set_debug(on);
  }
  // Has the owner of the windows note each call of an algorithm, in this run and later ones.
  void set_trace_calls(bool on);
  // Loads every plugin of the directory that is not loaded or has changed since, with `force` all.
  // ENOEXEC if one was refused.
  void load(const std::string& directory, bool force, Answer<void> answer);
  void unload(const std::string& algorithm, Answer<void> answer);
  // Sets parameters: all or none.
  void update(const std::string& algorithm, PccBackend::Assignments changes, Answer<void> answer);
  // Asks the backend for the present values of the applied algorithm's parameters, beside other
  // orders. Where it does not say them the values stay those that were known last. ENODEV when the
  // object has gone.
  void refresh(Answer<void> answer);
  // Answers after all earlier orders.
  void settle(Answer<void> answer);
  // Answers the reply of the card's processor.
  void dump(uint32_t qpn, Answer<std::string> answer);
  void echo(const std::string& message, Answer<std::string> answer);

  // ---- Orders of programs, see PccClaims ----

  Result<void> claim(const PccClaims::Program& program);
  void run_program(unsigned pollers, Answer<PccClaims::Pages> answer);
  void stop_program(Answer<void> answer);
  void release_program();

  // ---- PccBackend::Listener ----

  // A line of an algorithm, in mango-pccd or in a program. Left out when there are too many octets
  // of them.
  void pcc_log(LogLevel level, std::string_view line) override;
  void pcc_died(const std::string& why, bool named) override;

 private:
  using TurnPtr = OrderQueue::TurnPtr;
  // No action: end() follows when the device leaves.
  struct Windows final : WindowController {
    void windows_lost(Device&) override {}
  };

  const PccAlgorithmInfo* find(std::string_view name) const;
  Result<unsigned> slot_to_unload(const std::string& name) const;
  Result<unsigned> slot_to_update(const std::string& name,
                                  const PccBackend::Assignments& changes) const;
  // Queues an order to the card's processor, refused if the processor is unreachable at its turn.
  void order(std::function<void(TurnPtr)> act, Answer<void> answer);
  void ask(std::function<void(Answer<std::string>)> question, Answer<std::string> answer);
  void run(const TurnPtr& turn, unsigned pollers, unsigned interval_us,
           std::shared_ptr<SharedMemory> control);
  void started(const TurnPtr& turn, const PccBackend::Run& run);
  Result<void> apply_none();
  Result<void> may_start() const;
  Result<void> may_claim() const;
  Error claimed_error() const;
  void give_back(const WindowController& owner, Answer<void> answer);
  void take_over(std::vector<PccAlgorithmInfo> all);
  void take_values(const PccAlgorithmInfo& now);
  void forget();
  // Enters the state that follows `event`. Returns the state before.
  PccState advance(PccEvent event);
  void changed() const {
    if (changed_) changed_();
  }
  void log(LogLevel level, const std::string& what) const;
  void settle_log();

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
  bool control_is_programs_ = false;           // slots of control_ are the program's own
  unsigned pollers_ = 1;
  std::shared_ptr<SharedMemory> control_;
  std::string last_error_;
  LogBudget log_budget_;  // of lines of algorithms
  std::function<void()> changed_, state_changed_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);  // watched by refresh()
};

}  // namespace rocefs
