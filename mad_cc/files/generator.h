// Generator: sends a burst of SA requests from one port and counts how each ended: what
// kernel/debug/rocefs/sa/send does, for rigs without infiniband-diags.
//
// Core thread, but for what says otherwise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/loop/scheduler.h"
#include "mad_cc/files/burst_spec.h"
#include "mad_cc/port/mad_port.h"

namespace rocefs {

// What was asked for, and how each request has ended: in one way of these. Written by the core,
// read by any thread: each number is exact, and they always add up to spec.count, because what is
// not over is what the others leave.
struct Burst {
  BurstSpec spec;
  std::string port;   // PortName::text()
  Counter answered;   // with any status but Busy
  Counter busy;       // with status Busy
  Counter timed_out;  // sent, and nothing came to any try
  Counter expired;    // in the limiter's queue
  Counter refused;    // by the limiter: EBUSY, counted in mad_sa_cc/N/drops
  Counter flushed;    // the port went, or the burst was stopped

  uint64_t waiting() const;  // to be sent or answered
  // `burst 1000 port=mb_0 timeout=50ms retries=0: answered 16 busy 0 timed_out 0 expired 16 refused
  // 968 flushed 0 waiting 0`.
  std::string text() const;
};

class Generator final : private MadUser {
 public:
  // Both outlive it. Where time is virtual a burst that is under way is a flow to wait for.
  Generator(Scheduler& scheduler, Outstanding& outstanding);
  ~Generator() override;

  // Sends burst->spec.count requests Get(ClassPortInfo) to the administrator, all at this instant;
  // other events get their turn behind each kSlice of them. EBUSY while a burst is under way,
  // ENODEV while the port has gone.
  Result<void> start(std::shared_ptr<Burst> burst, MadPort& port, uint16_t administrator_lid);
  // What is not over ends as flushed. Nothing if no burst is under way.
  void stop();

  static constexpr uint64_t kSlice = 1024;

 private:
  void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override;
  void ended(uint32_t agent, uint64_t request, End end) override;
  Result<void> add_agent();
  Result<void> send_next();
  void send_slice(TimeNs now);
  void look_for_end();
  void finish(TimeNs now);

  Scheduler& scheduler_;
  Outstanding& outstanding_;
  std::shared_ptr<Burst> burst_;  // null: none is under way
  MadPort* port_ = nullptr;
  uint16_t administrator_lid_ = 0;
  std::vector<uint32_t> agents_;  // the last one sends
  uint64_t next_ = 0;             // of its requests
  Event slice_, finish_;
};

}  // namespace rocefs
