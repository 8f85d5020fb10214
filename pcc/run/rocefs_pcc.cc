// The functions of rocefs_pcc.h.
#include "pcc/api/rocefs_pcc.h"

#include <algorithm>

#include "pcc/run/call.h"
#include "pcc/run/handle.h"

using namespace rocefs;

extern "C" {

int rocefs_pcc_event_next(rocefs_pcc_event_t* event) {
  PccCall* call = PccCall::current();
  return event && call && call->next_event(*event) ? 1 : 0;
}

uint64_t rocefs_pcc_events_lost(void) {
  PccCall* call = PccCall::current();
  return call ? call->events_lost() : 0;
}

void rocefs_pcc_rate_update(uint64_t bits_per_second) {
  if (PccCall* call = PccCall::current()) call->set_rate(bits_per_second);
}

uint64_t rocefs_pcc_rate_current(void) {
  PccCall* call = PccCall::current();
  return call ? call->rate() : 0;
}

uint64_t rocefs_pcc_line_rate(void) {
  PccCall* call = PccCall::current();
  return call ? call->line_rate() : 0;
}

uint64_t rocefs_pcc_now(void) {
  PccCall* call = PccCall::current();
  return call ? static_cast<uint64_t>(call->now()) : 0;
}

mango_status_e rocefs_pcc_param_range(mango_pcc_h pcc, unsigned int slot, const char* name,
                                      double min, double max) {
  if (!pcc || !name) return MANGO_STATUS_INVALID_PARAM;
  try {
    return PccHandle::of(pcc)->limit_parameter(slot, name, min, max);
  } catch (...) {
    return MANGO_STATUS_ERROR;
  }
}

}  // extern "C"
