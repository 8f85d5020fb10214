// Generator: sends a burst of SA requests from one port and counts how each ended. Serves
// kernel/debug/rocefs/sa/send, for rigs without infiniband-diags.
//
// Core thread, unless stated otherwise.
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

// A burst and how its requests have ended, each in exactly one way. Written by the core, read by
// any thread. Each counter is exact; waiting() is the difference, so all of them always add up to
// spec.count.
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
  // Format: `burst 1000 port=mb_0 timeout=50ms retries=0: answered 16 busy 0 timed_out 0 expired 16
  // refused 968 flushed 0 waiting 0`.
  std::string text() const;
};

class Generator final : private MadUser {
 public:
  // `scheduler` and `outstanding` outlive the generator. Under the virtual clock a burst in
  // progress is a flow to wait for.
  Generator(Scheduler& scheduler, Outstanding& outstanding);
  ~Generator() override;

  // Sends burst->spec.count requests Get(ClassPortInfo) to the administrator at the current
  // instant. Other events run after each kSlice of them. EBUSY while a burst is in progress, ENODEV
  // while the port has no device.
  Result<void> start(std::shared_ptr<Burst> burst, MadPort& port, uint16_t administrator_lid);
  // Ends all pending requests as flushed. Does nothing without a burst in progress.
  void stop();

  static constexpr uint64_t kSlice = 1024;

 private:
  void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override;
  void ended(uint32_t agent, uint64_t request, End end) override;
  Result<void> add_agent();
  Result<void> send_next();
  void send_slice(TimeNs now);
  void finish_if_complete();
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
