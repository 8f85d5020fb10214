// Flow: built-in traffic between two devices of this mount: two endpoints that are joined without a
// message. Every byte of every message is checked at the moment its work request completes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "rdma/traffic/active_flow.h"

namespace rocefs {

// Checks what a flow wants of the ports of its ends: its MTU, its GID, the size of a datagram.
// EINVAL with the reason.
Result<void> check_flow_ports(const FlowSpec& spec, const Port& from, const Port& to);

// Core thread.
class Flow final : public ActiveFlow, private ArrivalListener {
 public:
  // `input` is sent, message by message; without it the flow makes bytes up. `ended` runs once, not
  // from within start().
  using Ended = std::function<void(Result<void>)>;
  Flow(Fabric& fabric, const FlowSpec& spec, const QpOwner& owner, std::shared_ptr<FlowStats> stats,
       std::shared_ptr<LocalMemory> input, Ended ended);
  ~Flow() override { stop(); }

  // Before start(): `arrived` runs once, when all messages are in their place at the far end: on
  // the far end's core, where that is another one. Not for READs, whose bytes are in place when
  // they end.
  void on_arrival(std::function<void()> arrived) { on_arrival_ = std::move(arrived); }
  // Checks the whole spec: an error means that nothing has started.
  Result<void> start();
  std::shared_ptr<LocalMemory> received() const override { return sink().memory(); }
  void account() override {
    near_.account();
    far_.account();
  }

 private:
  const FlowEndpoint& source() const { return reads() ? far_ : near_; }
  const FlowEndpoint& sink() const { return reads() ? near_ : far_; }

  Result<void> open();
  Result<void> check_apart();
  Result<void> agree();
  Result<void> connect(uint32_t pair);
  void message_arrived() override;
  void on_completions(TimeNs now) override;
  void before_post(uint32_t pair, uint64_t position) override;
  void after_send(uint32_t pair, uint64_t position) override;
  void take_datagram(const Completion& completion);
  bool atomics_are_right() const;
  void close() override;

  FlowEndpoint near_, far_;
  std::function<void()> on_arrival_;
  uint64_t arrived_ = 0;  // messages, while there is on_arrival_
};

}  // namespace rocefs
