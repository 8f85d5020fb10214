#include "pcc/run/handle.h"

#include <system_error>
#include <utility>

#include "core/base/text.h"
#include "pcc/api/parameter.h"
#include "pcc/run/call.h"

namespace rocefs {
namespace {

thread_local PccHandle* preparing_here = nullptr;

}  // namespace

PccHandle::PccHandle(std::unique_ptr<EngineSession> session, uint64_t seed)
    : session_(std::move(session)),
      controller_(seed,
                  [this](mango_log_level_e level, std::string_view text) { log(level, text); }) {}

PccHandle::~PccHandle() {
  stop();
}

void PccHandle::log(mango_log_level_e level, std::string_view text) {
  if (session_) session_->log(level, text);
}

mango_status_e PccHandle::run(unsigned pollers) {
  if (pollers == 0 || pollers > MANGO_PCC_MAX_THREADS) return MANGO_STATUS_INVALID_PARAM;
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(run_lock_);
  if (threads_) return MANGO_STATUS_BUSY;
  if (!session_) return MANGO_STATUS_NOT_SUPPORTED;
  // Checked before run() disables CFR.
  if (!controller_.any()) return MANGO_STATUS_BAD_STATE;
  EngineSession::Pages pages;
  mango_status_e status = session_->run(pollers, &pages);
  if (status != MANGO_STATUS_OK) return status;
  try {
    status = controller_.begin(pages.signals, pages.control, pollers);
    if (status == MANGO_STATUS_OK) {
      threads_ = std::make_unique<PollerThreads>(controller_, *pages.signals, pollers);
      return status;
    }
  } catch (const std::system_error&) {
    status = MANGO_STATUS_LIMIT;
  } catch (const std::bad_alloc&) {
    status = MANGO_STATUS_NO_MEMORY;
  }
  controller_.end();
  session_->stop();
  return status;
}

mango_status_e PccHandle::stop() {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(run_lock_);
  if (!threads_) return MANGO_STATUS_NOT_OPENED;
  threads_.reset();
  controller_.end();
  session_->stop();
  return MANGO_STATUS_OK;
}

PccHandle::Preparation::Preparation(PccHandle& handle, unsigned slot) : handle_(handle) {
  std::lock_guard guard(handle_.preparation_lock_);
  handle_.prepared_slot_ = slot;
  preparing_here = &handle_;
}

PccHandle::Preparation::~Preparation() {
  std::lock_guard guard(handle_.preparation_lock_);
  handle_.prepared_slot_.reset();
  handle_.prepared_.clear();
  preparing_here = nullptr;
}

std::vector<PccAlgorithm::Parameter> PccHandle::Preparation::take_parameters() {
  std::lock_guard guard(handle_.preparation_lock_);
  return std::exchange(handle_.prepared_, {});
}

bool PccHandle::is_preparing() {
  std::lock_guard guard(preparation_lock_);
  return prepared_slot_.has_value();
}

PccHandle* PccHandle::preparing() {
  return preparing_here;
}

mango_status_e PccHandle::prepare_parameter(PccAlgorithm::Parameter parameter) {
  if (parameter_size(parameter.type) == 0 || !valid_entry_name(parameter.name)) {
    return MANGO_STATUS_INVALID_PARAM;
  }
  for (const auto& other : prepared_) {
    if (other.name == parameter.name) return MANGO_STATUS_ALREADY_OPENED;
  }
  if (prepared_.size() == MANGO_PCC_MAX_PARAMS) return MANGO_STATUS_LIMIT;
  prepared_.push_back(std::move(parameter));
  return MANGO_STATUS_OK;
}

mango_status_e PccHandle::add_parameter(unsigned slot, PccAlgorithm::Parameter parameter) {
  {
    std::lock_guard guard(preparation_lock_);
    if (prepared_slot_ == slot) return prepare_parameter(std::move(parameter));
    if (prepared_slot_) return MANGO_STATUS_NOT_FOUND;
  }
  return controller_.add_parameter(slot, std::move(parameter));
}

mango_status_e PccHandle::limit_parameter(unsigned slot, std::string_view name, double min,
                                          double max) {
  if (!(min <= max)) return MANGO_STATUS_INVALID_PARAM;
  {
    std::lock_guard guard(preparation_lock_);
    if (prepared_slot_) {
      if (prepared_slot_ != slot) return MANGO_STATUS_NOT_FOUND;
      for (PccAlgorithm::Parameter& parameter : prepared_) {
        if (parameter.name != name) continue;
        parameter.min = min;
        parameter.max = max;
        return MANGO_STATUS_OK;
      }
      return MANGO_STATUS_NOT_FOUND;
    }
  }
  return controller_.limit_parameter(slot, name, min, max);
}

}  // namespace rocefs
