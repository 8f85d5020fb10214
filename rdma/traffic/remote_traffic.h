// RemoteTraffic: flows between this mount and another one, over their uplinks.
//
//   here:  echo "f1 write mb_0 10.9.0.2 file=/data" > traffic/start
//   there: echo "f1 accept mb_0 out=/tmp/copy" > traffic/start      (before)
//
// Messages over a rendezvous line join the flow's ends (rendezvous_message.h). The flow's state
// decides which message may come next (flow_state.h).
//
// Control thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log_limit.h"
#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow_admission.h"
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/flow_rendezvous.h"
#include "rdma/traffic/rendezvous_message.h"

namespace rocefs {

class RemoteTraffic {
 public:
  using Warn = std::function<void(const std::string&)>;
  struct Parts {
    Engine& engine;
    Fabric& fabric;
    Tree& tree;
    PollLoop& loop;
    FlowBook& book;
    std::string directory;  // of the flows, of exchange and exchange_port
    Warn warn;
  };
  explicit RemoteTraffic(Parts parts);

  // Whether such a flow may begin. EOPNOTSUPP under the virtual clock, ENETUNREACH without an
  // uplink, EADDRNOTAVAIL for a port that is not on it, EINVAL for an address of this mount.
  Result<void> check(const FlowSpec& spec) const;
  // Answers when the near end is open; the entry's state tells how the flow goes on.
  void launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);
  // Waits for another mount to begin the flow. ENODEV without a driver.
  void wait(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);

 private:
  void add_files();
  bool is_reachable(const Port& port) const;
  std::optional<Ip> local_for(const FlowSpec& spec) const;
  FlowParts parts_of(const FlowEntryPtr& entry, uint64_t seed);
  void listen_to(const FlowEntryPtr& entry);
  void take(const FlowEntryPtr& entry, const FlowMessage& message);
  void endpoint_ended(const FlowEntryPtr& entry, Result<void> result);
  void fail(const FlowEntryPtr& entry, const std::string& why);

  void connect(const FlowEntryPtr& entry, const FlowOffer& offer);
  void take_ready(const FlowEntryPtr& entry, const EndpointInfo& far);
  void take_report(const FlowEntryPtr& entry, const FlowReport& report);

  void begin_waiting(const FlowEntryPtr& entry, Answer<void> answer);
  void arrived(const RendezvousLinePtr& line);
  void refuse(const RendezvousLinePtr& line, const std::string& why);
  void take_first(const RendezvousLinePtr& line, std::string_view text);
  void serve(const FlowEntryPtr& entry, const RendezvousLinePtr& line, const FlowOffer& offer);
  void served(const FlowEntryPtr& entry, const FlowSpec& waited, const Result<EndpointInfo>& end);
  void take_done(const FlowEntryPtr& entry);
  void finished(const FlowEntryPtr& entry, const FlowReport& report,
                std::shared_ptr<LocalMemory> received);

  Parts parts_;
  LogLimit said_;
  std::shared_ptr<KnobSet> knobs_;
  std::unique_ptr<FlowRendezvous> rendezvous_;  // null: no uplink
  FlowAdmission admission_;
};

}  // namespace rocefs
