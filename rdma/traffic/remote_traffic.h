// RemoteTraffic: flows between this mount and another one, over their uplinks.
//
//   here:  echo "f1 write mb_0 10.9.0.2 file=/data" > traffic/start
//   there: echo "f1 accept mb_0 out=/tmp/copy" > traffic/start      (before)
//
// Whoever reaches the exchange may begin a flow of made-up bytes, as with a perftest server that
// runs; for real files the far mount must wait for the flow by its name, and says itself where they
// lie. On the control thread.
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
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/flow_rendezvous.h"
#include "rdma/traffic/flow_shares.h"
#include "rdma/traffic/half_flow.h"
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
    std::string directory;  // of the flows; exchange and exchange_port go there
    Warn warn;
  };
  explicit RemoteTraffic(Parts parts);

  // Whether a flow of that kind may begin. EOPNOTSUPP under the virtual clock, ENETUNREACH without
  // an uplink, EADDRNOTAVAIL for a port that is not on it, EINVAL for an address of this mount's.
  Result<void> check(const FlowSpec& spec) const;
  // Answers when the near end is open; what becomes of the exchange its state tells.
  void launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);
  // Waits for the far end to begin. ENODEV if the device has no driver.
  void wait(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);

 private:
  using Handle = void (RemoteTraffic::*)(const FlowEntryPtr&, FlowMessage);

  void add_files();
  bool is_reachable(const Port& port) const;
  void begin_waiting(const FlowEntryPtr& entry, Answer<void> answer);
  std::optional<Ip> local_for(const FlowSpec& spec) const;
  Port* port_at(const Ip& address) const;
  void listen_to(const FlowEntryPtr& entry, Handle handle);
  void fail(const FlowEntryPtr& entry, const std::string& why);
  void take_nothing(const FlowEntryPtr& entry, FlowMessage message);
  HalfFlow::Parts half_of(const FlowEntryPtr& entry, uint64_t seed);
  void half_ended(const FlowEntryPtr& entry, Result<void> result);

  void connect(const FlowEntryPtr& entry, const FlowOffer& offer);
  void take_ready(const FlowEntryPtr& entry, FlowMessage message);
  void take_report(const FlowEntryPtr& entry, FlowMessage message);

  void arrived(const RendezvousLinePtr& line);
  void refuse(const RendezvousLinePtr& line, const std::string& why);
  void take_first(const RendezvousLinePtr& line, std::string_view text);
  Result<FlowEntryPtr> entry_for(const RendezvousLine& line, const FlowOffer& offer);
  Result<void> fits(const FlowEntry& waiting, const RendezvousLine& line,
                    const FlowOffer& offer) const;
  Result<FlowEntryPtr> offered_entry(const RendezvousLine& line, const FlowOffer& offer,
                                     const FlowNeed& need);
  void serve(const FlowEntryPtr& entry, const RendezvousLinePtr& line, const FlowOffer& offer);
  void take_done(const FlowEntryPtr& entry, FlowMessage message);
  void finished(const FlowEntryPtr& entry, const FlowReport& report,
                std::shared_ptr<LocalMemory> received);

  Parts parts_;
  LogLimit said_;
  std::shared_ptr<KnobSet> knobs_;
  std::unique_ptr<FlowRendezvous> rendezvous_;  // null: no uplink
  FlowShares shares_;
};

}  // namespace rocefs
