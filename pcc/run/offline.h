// PccOffline: an algorithm without a device. Its calls get what a test or a recording tells instead
// of an engine, by register pages of its own, and run as those of a poller do: the same input, the
// same decisions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/result.h"
#include "core/base/time.h"
#include "pcc/api/algorithm.h"
#include "pcc/run/call.h"
#include "pcc/run/parameter_change.h"
#include "pcc/run/queue_pair.h"
#include "pcc/run/run.h"
#include "pcc/run/slots.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

// One thread.
class PccOffline {
 public:
  // Input of a call: all that it sees.
  struct Input {
    TimeNs at = 0;
    uint32_t qpn = ROCEFS_FIRST_QPN;
    uint32_t generation = 1;
    // The first call of a queue pair: it begins, with this window, in the place of an earlier one
    // of its number. ROCEFS_NO_WINDOW: there is no limit.
    bool first = false;
    uint32_t window = ROCEFS_NO_WINDOW;
    bool due = true;    // the interval has passed; false: a call for a round trip alone
    uint32_t cnps = 0;  // since the call before
    uint64_t rtt_ns = 0;
    bool rtt_new = false;  // rtt_ns answers the latest probe; without a probe it has no effect
    uint32_t active = 1;   // queue pairs
    uint64_t line_bps = 0;
    std::span<const rocefs_qp_event> events = {};  // since the call before
  };
  // Output of a call.
  struct Decision {
    uint32_t window = 0;
    uint64_t rate_bps = 0;  // 0: none
    bool probe = false;
  };

  // `log` gets what the algorithm logs. EINVAL: not fit for a slot; ENOMEM.
  static Result<std::unique_ptr<PccOffline>> of(PccAlgorithm algorithm, uint64_t seed, PccLog log);
  PccOffline(const PccOffline&) = delete;
  PccOffline& operator=(const PccOffline&) = delete;

  // EINVAL: there is no such number of a queue pair, or it has not begun. EFAULT: the algorithm
  // wrote past its parameters; it is not called again.
  Result<Decision> call(const Input& input);

  const PccAlgorithm& algorithm() const { return *slots_.at(0); }
  // A probe of the queue pair is unanswered.
  bool probing(uint32_t qpn) const;
  // Sets a parameter for present and future queue pairs. The error is that of
  // PccController::update().
  Result<void> set(const ParameterChange& change);
  // Text of a parameter, of this queue pair or, before it began, of the algorithm. ENOENT.
  Result<std::string> value(std::string_view name, uint32_t qpn);

 private:
  static void unmap(void* memory, size_t size);
  struct Unmap {
    template <class Page>
    void operator()(Page* page) const {
      unmap(page, sizeof(Page));
    }
  };
  template <class Page>
  using PagePtr = std::unique_ptr<Page, Unmap>;
  // Memory of zeros that is there when it is touched: the pages are large, and queue pairs few.
  template <class Page>
  static PagePtr<Page> map();

  PccOffline(PagePtr<rocefs_signals_page> signals, PagePtr<rocefs_control_page> control,
             uint64_t seed, PccLog log);
  PccQp* begin(const Input& input, uint32_t line);
  void tell(const Input& input, uint32_t line, PccQp& qp);

  const PagePtr<rocefs_signals_page> signals_;
  const PagePtr<rocefs_control_page> control_;
  const PccLog log_;
  const std::atomic<TimeNs> interval_{60 * kMicrosecond};
  PccSlots slots_;
  PccRun run_;
  PccReads reads_;
  std::unordered_map<uint32_t, PccQp> qps_;  // by number
};

}  // namespace rocefs
