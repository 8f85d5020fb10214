// PccHandle: the object behind a mango_pcc_h: a controller, the session with the engine whose
// windows it sets, and the threads of a run.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "pcc/api/engine_session.h"
#include "pcc/api/libmango.h"
#include "pcc/run/controller.h"
#include "pcc/run/poller_threads.h"

namespace rocefs {

class PccHandle {
 public:
  // `session` may be null if only the controller is used: run() returns NOT_SUPPORTED, and log
  // lines are dropped.
  PccHandle(std::unique_ptr<EngineSession> session, uint64_t seed);
  // Stops the run.
  ~PccHandle();
  PccHandle(const PccHandle&) = delete;
  PccHandle& operator=(const PccHandle&) = delete;

  mango_pcc_h c_handle() { return this; }
  static PccHandle* of(mango_pcc_h handle) { return static_cast<PccHandle*>(handle); }
  mango_context_h context() { return &controller_; }
  PccController& controller() { return controller_; }

  // mango_pcc_ctrl_run() and mango_pcc_ctrl_stop(). Any thread.
  mango_status_e run(unsigned pollers);
  mango_status_e stop();
  void log(mango_log_level_e level, std::string_view text);

  // Scope in which parameters registered for `slot` are kept for an algorithm that is not in the
  // slot yet: a plugin registers them before it is added. One at a time. take_parameters() returns
  // them unchecked. mango_pcc_log() of this thread writes to the handle's log.
  class Preparation {
   public:
    Preparation(PccHandle& handle, unsigned slot);
    ~Preparation();
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;
    std::vector<PccAlgorithm::Parameter> take_parameters();

   private:
    PccHandle& handle_;
  };
  // Any thread.
  bool is_preparing();
  // Handle of this thread's Preparation, or null.
  static PccHandle* preparing();
  // NOT_FOUND for another slot than that of a Preparation.
  mango_status_e add_parameter(unsigned slot, PccAlgorithm::Parameter parameter);
  mango_status_e limit_parameter(unsigned slot, std::string_view name, double min, double max);

 private:
  mango_status_e prepare_parameter(PccAlgorithm::Parameter parameter);

  const std::unique_ptr<EngineSession> session_;
  PccController controller_;
  std::mutex run_lock_;  // serializes run() and stop()
  std::unique_ptr<PollerThreads> threads_;
  std::mutex preparation_lock_;
  std::optional<unsigned> prepared_slot_;
  std::vector<PccAlgorithm::Parameter> prepared_;
};

}  // namespace rocefs
