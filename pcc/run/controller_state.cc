#include "pcc/run/controller_state.h"

#include <algorithm>

namespace rocefs {

PccQp* PccControllerState::find(uint32_t qpn) {
  if (!run || qpn < ROCEFS_FIRST_QPN || qpn - ROCEFS_FIRST_QPN >= ROCEFS_MAX_QPS) return nullptr;
  return poller_of(qpn - ROCEFS_FIRST_QPN).find(qpn - ROCEFS_FIRST_QPN);
}

std::vector<PccQp*> PccControllerState::running(unsigned slot) {
  std::vector<PccQp*> found;
  for (auto& poller : pollers) {
    poller->for_each([&](PccQp& qp) {
      if (qp.slot() == slot) found.push_back(&qp);
    });
  }
  std::sort(found.begin(), found.end(), [](PccQp* a, PccQp* b) { return a->qpn() < b->qpn(); });
  return found;
}

mango_status_e PccControllerState::remove(unsigned slot) {
  if (!slots.at(slot)) return slots.remove(slot);
  if (run && (run->slot == slot || !running(slot).empty())) return MANGO_STATUS_BUSY;
  if (applied == slot) applied.reset();
  return slots.remove(slot);
}

}  // namespace rocefs
