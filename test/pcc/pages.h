// PccPages: register pages with the test in the engine's place; algorithms scripted by a test.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pcc/algorithms/built_ins.h"
#include "pcc/run/controller.h"
#include "rdma/uapi/registers.h"

namespace rocefs::test {

class PccPages {
 public:
  PccPages()
      : signals(std::make_unique<rocefs_signals_page>()),
        control(std::make_unique<rocefs_control_page>()) {
    signals->version = ROCEFS_REGISTERS_VERSION;
    signals->dilation = 1;
  }
  rocefs_qp_signals& signals_of(uint32_t qpn) { return signals->qps[qpn - ROCEFS_FIRST_QPN]; }
  rocefs_qp_control& control_of(uint32_t qpn) { return control->qps[qpn - ROCEFS_FIRST_QPN]; }

  void activate(uint32_t qpn) {
    uint32_t line = qpn - ROCEFS_FIRST_QPN;
    ++signals->active_count;
    __atomic_add_fetch(&signals_of(qpn).generation, 1, __ATOMIC_RELEASE);
    __atomic_or_fetch(&signals->active[line / 64], uint64_t{1} << line % 64, __ATOMIC_RELAXED);
    __atomic_add_fetch(&signals->changes, 1, __ATOMIC_RELEASE);
  }
  void deactivate(uint32_t qpn) {
    uint32_t line = qpn - ROCEFS_FIRST_QPN;
    --signals->active_count;
    __atomic_add_fetch(&signals_of(qpn).generation, 1, __ATOMIC_RELEASE);
    __atomic_and_fetch(&signals->active[line / 64], ~(uint64_t{1} << line % 64), __ATOMIC_RELAXED);
    __atomic_add_fetch(&signals->changes, 1, __ATOMIC_RELEASE);
  }
  void cnps(uint32_t qpn, uint64_t more) {
    __atomic_add_fetch(&signals_of(qpn).cnps, more, __ATOMIC_RELAXED);
  }
  // An event of the queue pair as it is now.
  void add_event(uint32_t qpn, uint32_t bytes, uint16_t kind = ROCEFS_QP_ACK) {
    rocefs_qp_event event{};
    event.qpn = qpn;
    event.generation = signals_of(qpn).generation;
    event.bytes = bytes;
    event.kind = kind;
    add_event(event);
  }
  void add_event(const rocefs_qp_event& event) {
    signals->events[signals->events_written % ROCEFS_EVENT_ENTRIES] = event;
    __atomic_add_fetch(&signals->events_written, 1, __ATOMIC_RELEASE);
  }
  // Answers the latest probe.
  void answer(uint32_t qpn, uint64_t rtt_ns) {
    signals_of(qpn).rtt_ns = rtt_ns;
    __atomic_store_n(&signals_of(qpn).rtt_probe, control_of(qpn).probe, __ATOMIC_RELEASE);
  }
  uint32_t window(uint32_t qpn) {
    uint64_t word = __atomic_load_n(&control_of(qpn).window, __ATOMIC_ACQUIRE);
    return word >> 32 == signals_of(qpn).generation ? static_cast<uint32_t>(word)
                                                    : ROCEFS_NO_WINDOW;
  }

  std::unique_ptr<rocefs_signals_page> signals;
  std::unique_ptr<rocefs_control_page> control;
};

// Parameters of scripted(): the callback, and a value to set from outside.
struct PccScript {
  std::function<void(PccScript&)>* legacy = nullptr;
  std::function<mango_pcc_result_t(PccScript&, const mango_pcc_context_t&)>* event = nullptr;
  uint32_t number = 0;
  double fraction = 0;
  uint64_t kept = 0;  // not registered
};

inline const mango_pcc_param_t kScriptParameters[] = {REGISTER_UINT32_PARAM(PccScript, number),
                                                      REGISTER_DOUBLE_PARAM(PccScript, fraction)};

// Algorithm that calls `act` of the test, which outlives it.
inline PccAlgorithm scripted(std::string name, std::function<void(PccScript&)>& function) {
  PccAlgorithm algorithm;
  algorithm.name = std::move(name);
  algorithm.legacy = [](void* block) {
    auto& script = *static_cast<PccScript*>(block);
    (*script.legacy)(script);
  };
  algorithm.initial = block_of(PccScript{.legacy = &function});
  algorithm.parameters = parameters_of(kScriptParameters);
  return algorithm;
}
inline PccAlgorithm scripted(
    std::string name, uint32_t metrics,
    std::function<mango_pcc_result_t(PccScript&, const mango_pcc_context_t&)>& function) {
  PccAlgorithm algorithm;
  algorithm.name = std::move(name);
  algorithm.event = [](void* block, const mango_pcc_context_t* context) {
    auto& script = *static_cast<PccScript*>(block);
    return (*script.event)(script, *context);
  };
  algorithm.metrics = metrics;
  algorithm.initial = block_of(PccScript{.event = &function});
  algorithm.parameters = parameters_of(kScriptParameters);
  return algorithm;
}
inline mango_pcc_result_t keep_window(const mango_pcc_context_t& context) {
  mango_pcc_result_t result{};
  result.new_window = context.current_window;
  return result;
}

// Controller with its pages and log.
struct PccWorld {
  PccPages pages;
  std::vector<std::string> logged;
  PccController controller{
      7, [this](mango_log_level_e, std::string_view text) { logged.emplace_back(text); }};
  static constexpr TimeNs kInterval = 60 * kMicrosecond;

  mango_status_e begin(unsigned pollers = 1) {
    return controller.begin(pages.signals.get(), pages.control.get(), pollers);
  }
  TimeNs poll(TimeNs at) { return controller.poll(0, at); }
  // Polls at the requested times up to `until`.
  void run(TimeNs until) {
    while (now <= until) {
      TimeNs next = poll(now);
      REQUIRE(next > now);
      now = next;
    }
    now = until;
  }
  TimeNs now = 0;
  uint32_t calls(uint32_t qpn) {
    uint32_t count = 0;
    REQUIRE(controller.calls(qpn, &count) == MANGO_STATUS_OK);
    return count;
  }
  uint64_t cnp_count(uint32_t qpn) {
    uint64_t count = 0;
    REQUIRE(controller.cnp_count(qpn, &count) == MANGO_STATUS_OK);
    return count;
  }
};

}  // namespace rocefs::test
