// State machine of pcc/card/pcc_state.h: every state with every event.
#include "pcc/card/pcc_state.h"

#include <catch2/catch.hpp>
#include <string>

using namespace rocefs;

namespace {

struct Transition {
  PccState from;
  PccEvent event;
  PccState to;
};
using S = PccState;
using E = PccEvent;
constexpr Transition kTransitions[] = {
    {S::kUnbound, E::kBind, S::kIdle},
    {S::kIdle, E::kStart, S::kStarting},
    {S::kIdle, E::kClaim, S::kClaimed},
    {S::kStarting, E::kStarted, S::kActive},
    {S::kStarting, E::kStartFailed, S::kIdle},
    {S::kActive, E::kStopped, S::kIdle},
    {S::kActive, E::kDied, S::kIdle},
    {S::kClaimed, E::kProgramStarted, S::kProgramActive},
    {S::kClaimed, E::kRelease, S::kIdle},
    {S::kProgramActive, E::kProgramStopped, S::kClaimed},
    {S::kProgramActive, E::kRelease, S::kIdle},
};

PccState expected(PccState from, PccEvent event) {
  for (const Transition& transition : kTransitions) {
    if (transition.from == from && transition.event == event) return transition.to;
  }
  return event == E::kUnbind ? S::kUnbound : from;
}

}  // namespace

TEST_CASE("pcc state: an event outside the diagram does not change the state") {
  for (int state = 0; state <= static_cast<int>(S::kProgramActive); ++state) {
    for (int event = 0; event <= static_cast<int>(E::kRelease); ++event) {
      auto from = static_cast<PccState>(state);
      INFO(name_of(from).name << ", event " << event);
      CHECK(name_of(next_state(from, static_cast<PccEvent>(event))).name ==
            name_of(expected(from, static_cast<PccEvent>(event))).name);
    }
  }
}

TEST_CASE("pcc state: pcc/state shows active while the backend sets the windows, or program") {
  for (const PccStateName& row : kPccStateNames) {
    CHECK((row.shown == "active") == (row.name == "active"));
    CHECK((row.shown == "program") == (row.name == "program_active"));
    CHECK((row.shown == "inactive") == !row.name.ends_with("active"));
  }
}
