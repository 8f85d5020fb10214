#include "rdma/traffic/remote_traffic.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_file.h"
#include "rdma/nic/device.h"
#include "rdma/traffic/flow_listener.h"
#include "rdma/traffic/incoming_flow.h"
#include "rdma/traffic/outgoing_flow.h"
#include "rdma/traffic/remote_join.h"
#include "rdma/uplink/interface.h"
#include "rdma/uplink/uplink.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

constexpr KnobRow kKnobs[] = {
    {"exchange_port", KnobType::kUint, 0, 65535, "18516", "", "",
     "TCP port at which flows of other mounts are announced, here and there; 0: none"},
};
constexpr TimeNs kReadyWithin = 10 * kSecond;
constexpr TimeNs kReportWithin = 120 * kSecond;  // an output may have to be written

const std::string* failure_in(const FlowMessage& message) {
  const auto* failure = std::get_if<FlowFailure>(&message);
  return failure ? &failure->reason : nullptr;
}

}  // namespace

RemoteTraffic::RemoteTraffic(Parts parts)
    : parts_(std::move(parts)), admission_(parts_.fabric, parts_.book) {
  std::vector<Ip> addresses;
  for (const auto& uplink : parts_.fabric.uplinks()) {
    for (const Ip& address : uplink->own_addresses()) addresses.push_back(address);
  }
  if (addresses.empty()) return;
  rendezvous_ = std::make_unique<FlowRendezvous>(
      parts_.loop, std::move(addresses), [this](const RendezvousLinePtr& line) { arrived(line); },
      parts_.warn);
  add_files();
}

void RemoteTraffic::add_files() {
  parts_.tree.add_directory(parts_.directory, true);
  knobs_ = std::make_shared<KnobSet>(kKnobs, parts_.engine, nullptr);
  auto listen = [this] {
    constexpr size_t kPort = knob_index(kKnobs, "exchange_port");
    rendezvous_->listen(static_cast<uint16_t>(std::get<uint64_t>(knobs_->value(kPort))));
  };
  knobs_->on_change(listen);
  listen();
  add_knob_files(parts_.tree, parts_.directory, knobs_);
  parts_.tree.add_file(parts_.directory + "/exchange",
                       read_only(
                           [this]() -> Result<std::string> {
                             std::string text = rendezvous_->text();
                             text.pop_back();
                             return text;
                           },
                           "where other mounts announce their flows, and how many are connected"));
}

Result<void> RemoteTraffic::check(const FlowSpec& spec) const {
  if (parts_.engine.mode() != ClockMode::kReal) {
    return Error{EOPNOTSUPP, "the kernel's network needs the real clock"};
  }
  if (!rendezvous_) return Error{ENETUNREACH, "there is no uplink: -o uplink=ADDRESS makes one"};
  if (rendezvous_->port() == 0) return Error{ENETUNREACH, "exchange_port is 0"};
  if (spec.mtu != 0 && !valid_mtu(spec.mtu)) {
    return errorf(EINVAL, "mtu={}: 256, 512, 1024, 2048 or 4096 is wanted", spec.mtu);
  }
  if (spec.accepts) {
    if (is_reachable(*parts_.fabric.port(spec.from))) return {};
    return errorf(EADDRNOTAVAIL, "{} has no address on an uplink", spec.from);
  }
  if (Port* own = port_at(parts_.fabric, *spec.remote)) {
    return errorf(EINVAL, "{} is {} of this mount: name it so", spec.to, own->host().name());
  }
  if (is_broadcast(*spec.remote)) return errorf(EINVAL, "{} is a broadcast address", spec.to);
  if (std::optional<Ip> local = local_for(spec)) {
    if (is_loopback(*local) == is_loopback(*spec.remote)) return {};
    return errorf(EINVAL, "no way leads from {} to {}: one of them is inside its machine",
                  ip_text(*local), spec.to);
  }
  return errorf(EADDRNOTAVAIL, "{} has no IPv{} address on an uplink", spec.from,
                is_mapped_ipv4(*spec.remote) ? 4 : 6);
}

bool RemoteTraffic::is_reachable(const Port& port) const {
  std::vector<Ip> gids = gids_of(port.spec());
  return std::any_of(gids.begin(), gids.end(),
                     [this](const Ip& gid) { return rendezvous_->serves(gid); });
}

std::optional<Ip> RemoteTraffic::local_for(const FlowSpec& spec) const {
  const Port* port = parts_.fabric.port(spec.from);
  if (!port) return std::nullopt;
  for (const Ip& gid : gids_of(port->spec())) {
    if (is_mapped_ipv4(gid) == is_mapped_ipv4(*spec.remote) && rendezvous_->serves(gid)) return gid;
  }
  return std::nullopt;
}

// The next line of the entry's connection is a message of its flow; a failure and the end of the
// connection end the flow.
void RemoteTraffic::listen_to(const FlowEntryPtr& entry) {
  RendezvousLine::Handlers handlers;
  std::weak_ptr<FlowEntry> weak = entry;
  handlers.line = [this, weak](std::string_view text) {
    FlowEntryPtr kept = weak.lock();
    if (!kept || !kept->live()) return;
    Result<FlowMessage> message = parse_message(text);
    if (!message) return fail(kept, message.error().reason);
    if (const std::string* why = failure_in(*message)) return fail(kept, kept->peer + ": " + *why);
    take(kept, *message);
  };
  handlers.ended = [this, weak](const std::string& why) {
    FlowEntryPtr kept = weak.lock();
    if (!kept) return;
    fail(kept, kept->state() == FlowState::kConnecting
                   ? fmt::format("{} port {}: {}", kept->peer, kept->line->peer().port, why)
                   : fmt::format("{} has gone: {}", kept->peer, why));
  };
  entry->line->set_handlers(std::move(handlers));
}

// Each state takes one message.
void RemoteTraffic::take(const FlowEntryPtr& entry, const FlowMessage& message) {
  switch (entry->state()) {
    case FlowState::kConnecting:
      if (const auto* far = std::get_if<EndpointInfo>(&message)) return take_ready(entry, *far);
      break;
    case FlowState::kReporting:
      if (const auto* report = std::get_if<FlowReport>(&message))
        return take_report(entry, *report);
      break;
    case FlowState::kServing:
      if (std::holds_alternative<FlowDone>(message)) return take_done(entry);
      break;
    default:
      break;
  }
  fail(entry, entry->peer + " says what it should not now");
}

// An output that is being written is finished.
void RemoteTraffic::fail(const FlowEntryPtr& entry, const std::string& why) {
  if (!entry->live() || entry->writing()) return;
  parts_.book.ended(entry, nullptr, Error{EIO, why});
}

FlowParts RemoteTraffic::parts_of(const FlowEntryPtr& entry, uint64_t seed) {
  auto ended = [this, entry](Result<void> result) {
    parts_.engine.tell_control([this, entry, result = std::move(result)]() mutable {
      endpoint_ended(entry, std::move(result));
    });
  };
  auto discard = [this](std::shared_ptr<LocalMemory> memory) {
    parts_.engine.tell_control([kept = std::move(memory)] {});
  };
  return {parts_.fabric, entry->spec, entry->owner, entry->stats,
          entry->input,  seed,        ended,        discard};
}

// The near end.

void RemoteTraffic::launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                           Answer<void> answer) {
  entry->input = std::move(input);
  entry->peer = ip_text(*entry->spec.remote);
  entry->become(FlowState::kConnecting);
  FlowOffer offer;
  offer.spec = entry->spec;
  offer.seed = mix64(parts_.fabric.seed() ^ fnv1a64(entry->spec.name));
  offer.file = entry->input || !entry->spec.output.empty();
  std::optional<uint64_t> file;
  if (entry->input) file = entry->input->bytes().size();
  if (!entry->spec.output.empty()) file = 0;  // the far end says how long it is
  parts_.engine.call<EndpointInfo>(
      [entry, parts = parts_of(entry, offer.seed),
       path = path_between(*local_for(entry->spec), *entry->spec.remote),
       file]() mutable -> Result<EndpointInfo> {
        auto flow = std::make_shared<OutgoingFlow>(std::move(parts), path, file);
        entry->flow = flow;
        Result<EndpointInfo> end = flow->open();
        if (!end) entry->flow.reset();
        return end;
      },
      [this, entry, offer, answer = std::move(answer)](Result<EndpointInfo> end) mutable {
        if (!end) return answer(end.error());
        entry->input.reset();
        parts_.book.add_directory(entry);
        answer({});
        offer.end = std::move(*end);
        connect(entry, offer);
      });
}

void RemoteTraffic::connect(const FlowEntryPtr& entry, const FlowOffer& offer) {
  UdpAddress to{*entry->spec.remote, rendezvous_->port()};
  Result<RendezvousLinePtr> line = rendezvous_->connect(*local_for(entry->spec), to);
  if (!line)
    return fail(entry, fmt::format("{} port {}: {}", entry->peer, to.port, line.error().reason));
  entry->line = *line;
  entry->line->open({});
  listen_to(entry);
  entry->line->expect_within(kReadyWithin);
  entry->line->send(text_of(offer));
}

void RemoteTraffic::take_ready(const FlowEntryPtr& entry, const EndpointInfo& far) {
  entry->become(FlowState::kRunning);
  parts_.engine.call<void>(
      [entry, far]() -> Result<void> {
        if (!entry->flow) return {};  // stopped
        return static_cast<OutgoingFlow&>(*entry->flow).connect(far);
      },
      [this, entry](Result<void> result) {
        if (!result) fail(entry, result.error().reason);
      });
}

// Near: all requests have completed. Either end: it has failed.
void RemoteTraffic::endpoint_ended(const FlowEntryPtr& entry, Result<void> result) {
  if (!entry->live()) return;
  if (!result) return fail(entry, result.error().reason);
  entry->become(FlowState::kReporting);
  entry->line->expect_within(kReportWithin);
  entry->line->send(text_of(FlowDone{}));
}

void RemoteTraffic::take_report(const FlowEntryPtr& entry, const FlowReport& report) {
  entry->line->hang_up();
  using Received = std::shared_ptr<LocalMemory>;
  parts_.engine.call<Received>(
      [entry, report]() -> Result<Received> {
        if (!entry->flow) return Received{};
        static_cast<OutgoingFlow&>(*entry->flow).conclude(report);
        return entry->flow->received();
      },
      [this, entry](Result<Received> received) {
        if (!entry->live()) return;
        if (!received) return fail(entry, received.error().reason);
        parts_.book.ended(entry, std::move(*received), {});
      });
}

// The far end.

void RemoteTraffic::wait(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                         Answer<void> answer) {
  entry->input = std::move(input);
  begin_waiting(entry, [this, entry, answer = std::move(answer)](Result<void> begun) mutable {
    if (begun) parts_.book.add_directory(entry);
    answer(std::move(begun));
  });
}

void RemoteTraffic::begin_waiting(const FlowEntryPtr& entry, Answer<void> answer) {
  entry->become(FlowState::kWaiting);
  Device& device = device_of(*parts_.fabric.port(entry->spec.from));
  auto removed = [this, weak = std::weak_ptr<FlowEntry>(entry)] {
    parts_.engine.tell_control([this, weak] {
      FlowEntryPtr kept = weak.lock();
      if (!kept || kept->state() != FlowState::kWaiting) return;
      parts_.book.ended(kept, nullptr, Error{ENODEV, "device removed"});
    });
  };
  parts_.engine.call<void>(
      [entry, &device, removed]() -> Result<void> {
        if (entry->over) return Error{ECANCELED, "stopped"};
        auto listener = FlowListener::create(device, removed);
        if (!listener) return listener.error();
        entry->flow = *listener;
        return {};
      },
      std::move(answer));
}

void RemoteTraffic::arrived(const RendezvousLinePtr& line) {
  std::weak_ptr<RendezvousLine> weak = line;
  RendezvousLine::Handlers handlers;
  handlers.line = [this, weak](std::string_view text) {
    if (RendezvousLinePtr kept = weak.lock()) take_first(kept, text);
  };
  line->set_handlers(std::move(handlers));
}

void RemoteTraffic::refuse(const RendezvousLinePtr& line, const std::string& why) {
  auto say = [this](const std::string& text) {
    parts_.warn("traffic/exchange: " + text);
    return true;
  };
  if (said_.admit(monotonic_ns(), say)) {
    say(fmt::format("{}: refused: {}", ip_text(line->peer().ip), why));
  }
  line->hang_up(text_of(FlowFailure{why}));
}

void RemoteTraffic::take_first(const RendezvousLinePtr& line, std::string_view text) {
  Result<FlowMessage> message = parse_message(text);
  if (!message) return refuse(line, message.error().reason);
  const auto* offer = std::get_if<FlowOffer>(&*message);
  if (!offer) return refuse(line, "a flow begins with its offer");
  Result<FlowEntryPtr> entry = admission_.admit(*line, *offer);
  if (!entry) return refuse(line, entry.error().reason);
  serve(*entry, line, *offer);
}

void RemoteTraffic::serve(const FlowEntryPtr& entry, const RendezvousLinePtr& line,
                          const FlowOffer& offer) {
  FlowSpec waited = entry->spec;
  entry->spec = offer.spec;
  entry->spec.accepts = true;
  entry->spec.from = waited.from;
  entry->spec.input = waited.input;
  entry->spec.output = waited.output;
  entry->spec.remote = line->peer().ip;
  entry->peer = ip_text(line->peer().ip);
  entry->line = line;
  line->carry_flow();
  admission_.count(entry);
  entry->become(FlowState::kServing);
  listen_to(entry);
  std::optional<uint64_t> file;
  if (offer.file) file = entry->input ? entry->input->bytes().size() : offer.end.bytes;
  auto answer = [this, entry, waited](Result<EndpointInfo> end) { served(entry, waited, end); };
  auto ready = [this, answer](Result<EndpointInfo> end) {
    parts_.engine.tell_control([answer, end = std::move(end)] { answer(end); });
  };
  parts_.engine.call<void>(
      [entry, parts = parts_of(entry, offer.seed),
       path = path_between(line->local(), line->peer().ip), file, near = offer.end,
       ready]() mutable -> Result<void> {
        if (entry->over) return Error{ECANCELED, "stopped"};
        auto flow = std::make_shared<IncomingFlow>(std::move(parts), path, file);
        entry->flow = flow;
        Result<void> begun = flow->serve(std::move(near), ready);
        if (!begun) entry->flow.reset();
        return begun;
      },
      [answer](Result<void> begun) {
        if (!begun) answer(begun.error());
      });
}

// The far end is ready, or cannot be: a flow that waits waits for another offer.
void RemoteTraffic::served(const FlowEntryPtr& entry, const FlowSpec& waited,
                           const Result<EndpointInfo>& end) {
  if (!entry->live() || !entry->line) return;
  if (end) {
    if (entry->offered) parts_.book.add_directory(entry);
    return entry->line->send(text_of(*end));
  }
  refuse(std::exchange(entry->line, nullptr), end.error().reason);
  if (entry->offered) return parts_.book.ended(entry, nullptr, end.error());
  entry->spec = waited;
  entry->need = {};
  begin_waiting(entry, [this, entry](Result<void> begun) {
    if (!begun) fail(entry, begun.error().reason);
  });
}

void RemoteTraffic::take_done(const FlowEntryPtr& entry) {
  entry->become(FlowState::kFinishing);
  auto report = [this, entry](FlowReport told) {
    parts_.engine.tell_control([this, entry, told, received = entry->flow->received()]() mutable {
      finished(entry, told, std::move(received));
    });
  };
  parts_.engine.call<void>(
      [entry, report]() -> Result<void> {
        if (entry->flow) static_cast<IncomingFlow&>(*entry->flow).finish(report);
        return {};
      },
      [this, entry](Result<void> result) {
        if (!result) fail(entry, result.error().reason);
      });
}

void RemoteTraffic::finished(const FlowEntryPtr& entry, const FlowReport& report,
                             std::shared_ptr<LocalMemory> received) {
  if (!entry->live()) return;
  entry->settled = [line = entry->line, report](const Result<void>& result) {
    // The far end must not learn where the bytes lie here: an errno has no path.
    line->hang_up(result ? text_of(report)
                         : text_of(FlowFailure{std::strerror(result.error().code)}));
  };
  parts_.book.ended(entry, std::move(received), {});
}

}  // namespace rocefs
