#include "pcc/card/pcc_state.h"

namespace rocefs {

PccState next_state(PccState state, PccEvent event) {
  using enum PccEvent;
  if (event == kUnbind) return PccState::kUnbound;
  switch (state) {
    case PccState::kUnbound:
      return event == kBind ? PccState::kIdle : state;
    case PccState::kIdle:
      if (event == kStart) return PccState::kStarting;
      return event == kClaim ? PccState::kClaimed : state;
    case PccState::kStarting:
      if (event == kStarted) return PccState::kActive;
      return event == kStartFailed ? PccState::kIdle : state;
    case PccState::kActive:
      return event == kStopped || event == kDied ? PccState::kIdle : state;
    case PccState::kClaimed:
      if (event == kProgramStarted) return PccState::kProgramActive;
      return event == kRelease ? PccState::kIdle : state;
    case PccState::kProgramActive:
      if (event == kProgramStopped) return PccState::kClaimed;
      return event == kRelease ? PccState::kIdle : state;
  }
  return state;
}

}  // namespace rocefs
