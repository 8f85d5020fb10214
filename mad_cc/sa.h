// SubnetAdministrator: the emulated SA of one subnet (IBTA volume 1, chapter 15): answers queries
// about it as slowly and as lossily as it is told. Answers of more than one MAD go by RMPP.
//
// Core thread.
#pragma once

#include <memory>

#include "core/scheduler.h"
#include "mad_cc/mad.h"
#include "mad_cc/subnet.h"

namespace rocefs {

struct SaSettings {
  TimeNs delay_ns = 0;  // from a request to its answer
  double loss = 0;      // probability that a request is not heard
  double busy = 0;      // probability that the answer is status Busy
};

class SubnetAdministrator {
 public:
  // Where its MADs go.
  class Output {
   public:
    virtual ~Output() = default;
    virtual void transmit_from_sa(const mad::Address& to, const mad::Mad& mad) = 0;
  };
  // All outlive it. `seed` decides what is lost and who finds it busy.
  SubnetAdministrator(const Subnet& subnet, const SubnetState& state, Scheduler& scheduler,
                      uint64_t seed, Output& output);
  ~SubnetAdministrator();

  void configure(const SaSettings& settings);
  // Everything under way is forgotten, chance begins anew.
  void reset();
  // A MAD of class SubnAdm, for the manager's port. `from.lid` is the sender's.
  void receive(const mad::Address& from, const mad::Mad& mad);
  // How many requests it has heard and not yet answered, RMPP included. At most kMaxRequests: more
  // are answered Busy, or not at all.
  size_t pending() const;
  static constexpr size_t kMaxRequests = 1024;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
