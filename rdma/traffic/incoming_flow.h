// IncomingFlow: the far end of a flow from another mount: it has the memory and the receive
// requests.
//
// The near end may be a stranger's. So messages are checked piece by piece, for other packets not
// to wait long; each READ makes up its messages; and the flow ends when nothing comes.
//
// Core thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "rdma/traffic/active_flow.h"
#include "rdma/traffic/remote_join.h"

namespace rocefs {

class IncomingFlow final : public ActiveFlow {
 public:
  static constexpr uint64_t kPiece = 1 << 20;         // octets of messages that an event checks
  static constexpr uint32_t kQpsAtOnce = 64;          // that an event makes
  static constexpr TimeNs kPieceTime = kMillisecond;  // from one such event to the next
  static constexpr TimeNs kIdle = 120 * kSecond;      // without a packet, until the flow ends

  // `file`: bytes of the file that arrives or is read here.
  IncomingFlow(FlowParts parts, const AddressVector& path, std::optional<uint64_t> file);
  ~IncomingFlow() override;

  // Makes the memory, then queue pairs, joined to the near end's. `ready` runs once, not from
  // within this call, unless the flow ends before: with this end as the near one needs it. EINVAL
  // for an impossible near end.
  using Ready = std::function<void(Result<EndpointInfo>)>;
  Result<void> serve(EndpointInfo near, Ready ready);
  // The near end has all its completions. `report` runs once, not from within this call.
  void finish(std::function<void(FlowReport)> report);

  std::shared_ptr<LocalMemory> received() const override { return end_.memory(); }
  void account() override { end_.account(); }

 private:
  // The check of one message, which may take several events.
  struct Check {
    uint64_t offset = 0;  // of its next piece
    bool intact = true;   // so far
  };

  void before_post(uint32_t, uint64_t) override {}
  void after_send(uint32_t, uint64_t) override {}
  void on_completions(TimeNs now) override;
  void close() override;
  void on_prepare(TimeNs now);
  Result<void> prepare_some();
  void on_finish(TimeNs now);
  void on_idle(TimeNs now);
  bool check_piece(std::span<const uint8_t> bytes, uint64_t message, uint64_t& budget);
  bool check_arrived(uint64_t& budget);
  bool check_written(uint64_t& budget);
  FlowReport report();

  const AddressVector path_;
  const std::optional<uint64_t> file_;
  FlowEndpoint end_;
  std::optional<PsnDraw> draw_;  // once for all queue pairs
  EndpointInfo near_;
  Ready ready_;
  std::function<void(FlowReport)> report_;
  std::deque<Completion> arrived_;  // of receive requests whose messages are not checked yet
  Check check_;
  // The next of the messages that WRITEs left.
  uint32_t written_pair_ = 0;
  uint64_t written_message_ = 0;  // of those of the pair
  uint64_t mismatched_ = 0;       // of these messages
  uint64_t progress_ = 0;         // when it was looked at
  TimeNs progressed_ns_ = 0;
  Event prepare_, finish_, idle_;
};

}  // namespace rocefs
