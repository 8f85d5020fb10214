// PccState: which party sets the windows of a device.
//
//   kUnbound
//      | kBind
//      v     kStart                 kStarted
//    kIdle ----------> kStarting ------------> kActive
//     ^ ^ ^                | kStartFailed         | kStopped, kDied
//     | | `----------------'                      |
//     | `-----------------------------------------'
//     |      kClaim               kProgramStarted
//    kIdle ----------> kClaimed ---------------> kProgramActive
//     ^                  |  ^------------------------'  |
//     |         kRelease |       kProgramStopped        | kRelease
//     `------------------'------------------------------'
//
// kUnbind leads from any state to kUnbound. Any other event leaves the state as it is.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocefs {

enum class PccState : uint8_t {
  kUnbound,        // no driver
  kIdle,           // bound; CFR or no limit
  kStarting,       // windows taken, start order sent to the backend
  kActive,         // the backend runs the applied algorithm
  kClaimed,        // claimed by a program, which does not run
  kProgramActive,  // the program sets the windows
};

enum class PccEvent : uint8_t {
  kBind,
  kUnbind,
  kStart,
  kStarted,
  kStartFailed,
  kStopped,
  kDied,  // the backend ended by itself
  kClaim,
  kProgramStarted,
  kProgramStopped,
  kRelease,
};

PccState next_state(PccState state, PccEvent event);

struct PccStateName {
  std::string_view name;
  std::string_view shown;  // text of pcc/state
};
inline constexpr PccStateName kPccStateNames[] = {
    {"unbound", "inactive"}, {"idle", "inactive"},    {"starting", "inactive"},
    {"active", "active"},    {"claimed", "inactive"}, {"program_active", "program"},
};
constexpr const PccStateName& name_of(PccState state) {
  return kPccStateNames[static_cast<size_t>(state)];
}

}  // namespace rocefs
