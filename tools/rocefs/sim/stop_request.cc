#include "tools/rocefs/sim/stop_request.h"

#include <cstddef>

namespace rocefs {
namespace {

void take_signal(int) {}

}  // namespace

// SA_RESETHAND resets the signal's action before the handler runs: the action itself is the flag,
// and the next signal ends the process.
StopRequest::StopRequest() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = take_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopRequest::~StopRequest() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

std::string_view StopRequest::signal_name() const {
  constexpr std::string_view kNames[] = {"SIGINT", "SIGTERM", "SIGHUP"};
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kSignals[i], nullptr, &now);
    if (now.sa_handler == SIG_DFL) return kNames[i];
  }
  return {};
}

}  // namespace rocefs
