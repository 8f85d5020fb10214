// The functions of libmango.h that take a handle, but for mango_pcc_create().
#include <cstring>
#include <new>

#include "pcc/api/libmango.h"
#include "pcc/run/handle.h"

using namespace rocefs;

namespace {

// Converts exceptions to statuses: none may leave a C function.
template <class Function>
mango_status_e guarded(Function function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return MANGO_STATUS_NO_MEMORY;
  } catch (...) {
    return MANGO_STATUS_ERROR;
  }
}

// Whether a call may use the handle beyond the parameters of the slot: not while a plugin's
// init_params runs, which is to make its own algorithm only.
mango_status_e may_use(mango_pcc_h pcc) {
  if (!pcc) return MANGO_STATUS_INVALID_PARAM;
  return PccHandle::of(pcc)->is_preparing() ? MANGO_STATUS_BAD_STATE : MANGO_STATUS_OK;
}

mango_status_e add(mango_pcc_h pcc, unsigned slot, PccAlgorithm&& algorithm, const void* initial,
                   size_t size) {
  if (!initial && size > 0) return MANGO_STATUS_INVALID_PARAM;
  if (size > MANGO_PCC_MAX_PARAM_SIZE) return MANGO_STATUS_LIMIT;
  if (mango_status_e may = may_use(pcc); may != MANGO_STATUS_OK) return may;
  auto* bytes = static_cast<const uint8_t*>(initial);
  if (size > 0) algorithm.initial.assign(bytes, bytes + size);
  return PccHandle::of(pcc)->controller().add(slot, std::move(algorithm));
}

mango_status_e add_parameter(mango_pcc_h pcc, unsigned slot, const char* name,
                             mango_pcc_param_type_e type, size_t offset) {
  if (!name) return MANGO_STATUS_INVALID_PARAM;
  return PccHandle::of(pcc)->add_parameter(slot, {name, type, offset});
}

}  // namespace

extern "C" {

mango_status_e mango_pcc_destroy(mango_pcc_h pcc) {
  return guarded([&] {
    if (mango_status_e may = may_use(pcc); may != MANGO_STATUS_OK) return may;
    PccHandle* handle = PccHandle::of(pcc);
    if (handle->stop() == MANGO_STATUS_BAD_STATE) return MANGO_STATUS_BAD_STATE;
    delete handle;
    return MANGO_STATUS_OK;
  });
}

mango_context_h mango_pcc_get_context(mango_pcc_h pcc) {
  return pcc ? PccHandle::of(pcc)->context() : nullptr;
}

mango_status_e mango_pcc_ctrl_config(mango_pcc_h pcc, const mango_pcc_config_t* config) {
  return guarded([&] {
    if (!pcc || !config || config->option != MANGO_PCC_CONFIG_INTERVAL) {
      return MANGO_STATUS_INVALID_PARAM;
    }
    if (mango_status_e may = may_use(pcc); may != MANGO_STATUS_OK) return may;
    unsigned interval_us = config->value.interval_us;
    if (interval_us < 1 || interval_us > 1'000'000) return MANGO_STATUS_INVALID_PARAM;
    return PccHandle::of(pcc)->controller().set_interval(interval_us * kMicrosecond);
  });
}

mango_status_e mango_pcc_ctrl_reg_algo(mango_pcc_h pcc, unsigned int slot, mango_pcc_algo_fn* algo,
                                       const void* initial_params, size_t param_size) {
  return guarded([&] {
    if (!pcc || !algo) return MANGO_STATUS_INVALID_PARAM;
    PccAlgorithm algorithm;
    algorithm.legacy = algo;
    return add(pcc, slot, std::move(algorithm), initial_params, param_size);
  });
}

mango_status_e mango_pcc_ctrl_reg_algo_event(mango_pcc_h pcc, unsigned int slot,
                                             mango_pcc_algo_event_fn* algo,
                                             uint32_t required_metrics, const void* initial_params,
                                             size_t param_size) {
  return guarded([&] {
    if (!pcc || !algo) return MANGO_STATUS_INVALID_PARAM;
    PccAlgorithm algorithm;
    algorithm.event = algo;
    algorithm.metrics = required_metrics;
    return add(pcc, slot, std::move(algorithm), initial_params, param_size);
  });
}

mango_status_e mango_pcc_ctrl_unreg_algo(mango_pcc_h pcc, unsigned int slot) {
  return guarded([&] {
    mango_status_e may = may_use(pcc);
    return may == MANGO_STATUS_OK ? PccHandle::of(pcc)->controller().remove(slot) : may;
  });
}

mango_status_e mango_pcc_ctrl_apply_algo(mango_pcc_h pcc, unsigned int slot,
                                         const unsigned int* qp_list, unsigned int qp_count) {
  return guarded([&] {
    if (mango_status_e may = may_use(pcc); may != MANGO_STATUS_OK) return may;
    PccController& controller = PccHandle::of(pcc)->controller();
    return qp_list ? controller.apply(slot, {qp_list, qp_count}) : controller.apply(slot);
  });
}

mango_status_e mango_pcc_ctrl_run(mango_pcc_h pcc, unsigned int num_threads) {
  return guarded([&] {
    mango_status_e may = may_use(pcc);
    return may == MANGO_STATUS_OK ? PccHandle::of(pcc)->run(num_threads) : may;
  });
}

mango_status_e mango_pcc_ctrl_stop(mango_pcc_h pcc) {
  return guarded([&] {
    mango_status_e may = may_use(pcc);
    return may == MANGO_STATUS_OK ? PccHandle::of(pcc)->stop() : may;
  });
}

mango_status_e mango_pcc_param_register(mango_pcc_h pcc, const unsigned int slot, const char* name,
                                        mango_pcc_param_type_e type, size_t offset) {
  return guarded([&] {
    return pcc ? add_parameter(pcc, slot, name, type, offset) : MANGO_STATUS_INVALID_PARAM;
  });
}

mango_status_e mango_pcc_params_register(mango_pcc_h pcc, unsigned int slot,
                                         const mango_pcc_param_t* params, unsigned int nr_params) {
  return guarded([&] {
    if (!pcc || (!params && nr_params > 0)) return MANGO_STATUS_INVALID_PARAM;
    mango_status_e worst = MANGO_STATUS_OK;
    for (unsigned i = 0; i < nr_params; ++i) {
      mango_status_e status =
          add_parameter(pcc, slot, params[i].name, params[i].type, params[i].offset);
      if (status == MANGO_STATUS_OK) continue;
      if (worst == MANGO_STATUS_OK || worst == MANGO_STATUS_ALREADY_OPENED) worst = status;
    }
    return worst;
  });
}

mango_status_e mango_pcc_walk_params(mango_pcc_h pcc, const unsigned int slot,
                                     mango_pcc_param_walk_fn callback, void* user_data,
                                     unsigned int mode) {
  return guarded([&] {
    if (mango_status_e may = may_use(pcc); may != MANGO_STATUS_OK) return may;
    return PccHandle::of(pcc)->controller().walk(slot, callback, user_data, mode);
  });
}

mango_status_e mango_pcc_active_qp_list(mango_pcc_h pcc, uint32_t* qp_list, uint32_t* qp_count) {
  return guarded([&] {
    if (!pcc || !qp_list || !qp_count) return MANGO_STATUS_INVALID_PARAM;
    size_t count = PccHandle::of(pcc)->controller().active(qp_list, MANGO_PCC_MAX_QPS);
    *qp_count = static_cast<uint32_t>(count);
    return MANGO_STATUS_OK;
  });
}

mango_status_e mango_pcc_cnp_count_by_qp(mango_pcc_h pcc, uint32_t qp_num, uint64_t* cnp_count) {
  return guarded([&] {
    if (!pcc || !cnp_count) return MANGO_STATUS_INVALID_PARAM;
    return PccHandle::of(pcc)->controller().cnp_count(qp_num, cnp_count);
  });
}

mango_status_e mango_pcc_window_current_by_qp(mango_pcc_h pcc, uint32_t qp_num,
                                              uint32_t* window_size) {
  return guarded([&] {
    if (!pcc || !window_size) return MANGO_STATUS_INVALID_PARAM;
    return PccHandle::of(pcc)->controller().window(qp_num, window_size);
  });
}

mango_status_e mango_pcc_window_count_by_qp(mango_pcc_h pcc, uint32_t qp_num, uint32_t* count) {
  return guarded([&] {
    if (!pcc || !count) return MANGO_STATUS_INVALID_PARAM;
    return PccHandle::of(pcc)->controller().calls(qp_num, count);
  });
}

}  // extern "C"
