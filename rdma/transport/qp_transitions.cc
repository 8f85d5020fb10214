#include "rdma/transport/qp_transitions.h"

#include <array>
#include <cerrno>
#include <optional>

namespace rocefs {
namespace {

struct Masks {
  uint32_t required = 0;
  uint32_t optional = 0;
};

constexpr uint32_t kConnect =
    kQpPath | kQpPathMtu | kQpRemoteQpn | kQpReceivePsn;  // required by a connection in RTR
constexpr uint32_t kReader = kQpMaxDestRdAtomic | kQpMinRnrTimer;
constexpr uint32_t kPlace = kQpPkeyIndex | kQpPort | kQpAccess;
constexpr uint32_t kRetries =
    kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpSendPsn | kQpMaxRdAtomic;

struct Transition {
  QpState from, to;
  std::array<Masks, 5> masks;  // by QpType: RC, UC, UD, XRC_SEND, XRC_RECV
  bool for_reliable = true;    // SQE is for the unreliable services only
};

constexpr Transition kTransitions[] = {
    {QpState::kReset,
     QpState::kInit,
     {{{kPlace, 0}, {kPlace, 0}, {kQpPkeyIndex | kQpPort | kQpQkey, 0}, {kPlace, 0}, {kPlace, 0}}}},
    {QpState::kInit,
     QpState::kInit,
     {{{0, kPlace}, {0, kPlace}, {0, kQpPkeyIndex | kQpPort | kQpQkey}, {0, kPlace}, {0, kPlace}}}},
    {QpState::kInit,
     QpState::kRtr,
     {{{kConnect | kReader, kQpAccess | kQpPkeyIndex},
       {kConnect, kQpAccess | kQpPkeyIndex},
       {0, kQpPkeyIndex | kQpQkey},
       {kConnect, kQpAccess | kQpPkeyIndex},
       {kConnect | kReader, kQpAccess | kQpPkeyIndex}}}},
    {QpState::kRtr,
     QpState::kRts,
     {{{kRetries, kQpAccess | kQpMinRnrTimer},
       {kQpSendPsn, kQpAccess},
       {kQpSendPsn, kQpQkey},
       {kRetries, kQpAccess},
       {kQpTimeout | kQpSendPsn, kQpAccess | kQpMinRnrTimer}}}},
    {QpState::kRts,
     QpState::kRts,
     {{{0, kQpAccess | kQpMinRnrTimer},
       {0, kQpAccess},
       {0, kQpQkey},
       {0, kQpAccess},
       {0, kQpAccess | kQpMinRnrTimer}}}},
    {QpState::kRts,
     QpState::kSqd,
     {{{0, kQpNotifyDrained},
       {0, kQpNotifyDrained},
       {0, kQpNotifyDrained},
       {0, kQpNotifyDrained},
       {0, kQpNotifyDrained}}}},
    {QpState::kSqd,
     QpState::kRts,
     {{{0, kQpAccess | kQpMinRnrTimer},
       {0, kQpAccess},
       {0, kQpQkey},
       {0, kQpAccess},
       {0, kQpAccess | kQpMinRnrTimer}}}},
    {QpState::kSqd,
     QpState::kSqd,
     {{{0, kQpPkeyIndex | kQpPort | kQpPath | kQpAccess | kQpTimeout | kQpRetryCount | kQpRnrRetry |
               kQpMaxRdAtomic | kQpMaxDestRdAtomic | kQpMinRnrTimer},
       {0, kQpPkeyIndex | kQpPort | kQpPath | kQpAccess},
       {0, kQpPkeyIndex | kQpQkey},
       {0, kPlace | kQpPath | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic},
       {0, kPlace | kQpPath | kQpTimeout | kQpMaxDestRdAtomic | kQpMinRnrTimer}}}},
    {QpState::kSqe, QpState::kRts, {{{0, 0}, {0, kQpAccess}, {0, kQpQkey}, {0, 0}, {0, 0}}}, false},
};

constexpr struct {
  uint32_t bit;
  std::string_view name;
} kNames[] = {
    {kQpPkeyIndex, "P_Key index"},
    {kQpPort, "port"},
    {kQpAccess, "access flags"},
    {kQpQkey, "Q_Key"},
    {kQpPath, "address vector"},
    {kQpPathMtu, "path MTU"},
    {kQpRemoteQpn, "destination QPN"},
    {kQpSendPsn, "send PSN"},
    {kQpReceivePsn, "receive PSN"},
    {kQpTimeout, "timeout"},
    {kQpRetryCount, "retry count"},
    {kQpRnrRetry, "RNR retry count"},
    {kQpMinRnrTimer, "minimum RNR timer"},
    {kQpMaxRdAtomic, "initiated READs and atomics"},
    {kQpMaxDestRdAtomic, "responder's READs and atomics"},
    {kQpNotifyDrained, "wish to be told of a drained send queue"},
};

std::string_view first_name(uint32_t bits) {
  for (const auto& one : kNames) {
    if (bits & one.bit) return one.name;
  }
  return "?";
}

// kQpWindow, an attribute of rocefs alone, may be set in every transition.
constexpr uint32_t kAlways = kQpWindow;

std::optional<Masks> masks_of(QpType type, QpState from, QpState to) {
  if (to == QpState::kReset || to == QpState::kError) return Masks{};
  for (const Transition& one : kTransitions) {
    if (one.from != from || one.to != to) continue;
    if (is_reliable(type) && !one.for_reliable) return std::nullopt;
    return one.masks[static_cast<size_t>(type)];
  }
  return std::nullopt;
}

}  // namespace

uint32_t required_attributes(QpType type, QpState from, QpState to) {
  std::optional<Masks> masks = masks_of(type, from, to);
  return masks ? masks->required : 0;
}

Result<void> check_transition(QpType type, QpState from, QpState to, uint32_t mask) {
  std::optional<Masks> masks = masks_of(type, from, to);
  if (!masks) {
    return errorf(EINVAL, "{}: no way from {} to {}", name(type), name(from), name(to));
  }
  if (uint32_t missing = masks->required & ~mask) {
    return errorf(EINVAL, "{}: {} to {} needs the {}", name(type), name(from), name(to),
                  first_name(missing));
  }
  if (uint32_t extra = mask & ~(masks->required | masks->optional | kAlways)) {
    return errorf(EINVAL, "{}: {} to {} does not take the {}", name(type), name(from), name(to),
                  first_name(extra));
  }
  return {};
}

}  // namespace rocefs
