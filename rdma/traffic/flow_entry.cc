#include "rdma/traffic/flow_entry.h"

namespace rocefs {

std::string FlowEntry::state_text() const {
  std::string text(row_of(state_).word);
  return state_ == FlowState::kFailed ? text + ": " + reason_ : text;
}

void FlowEntry::become(FlowState next, std::string reason) {
  std::string before = state_text();
  state_ = next;
  reason_ = std::move(reason);
  if (state_text() == before) return;
  if (auto file = state_file.lock()) file->notify();
}

}  // namespace rocefs
