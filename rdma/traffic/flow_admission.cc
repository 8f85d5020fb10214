#include "rdma/traffic/flow_admission.h"

#include <algorithm>
#include <cerrno>

#include "rdma/nic/device.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {

bool has_address(const Port& port, const Ip& address) {
  std::vector<Ip> gids = gids_of(port.spec());
  return std::find(gids.begin(), gids.end(), address) != gids.end();
}

Port* port_at(Fabric& fabric, const Ip& address) {
  for (const auto& device : fabric.devices()) {
    for (size_t i = 1; i <= device->port_count(); ++i) {
      if (has_address(device->port(i), address)) return &device->port(i);
    }
  }
  return nullptr;
}

Result<FlowEntryPtr> FlowAdmission::admit(const RendezvousLine& line, const FlowOffer& offer) {
  Result<FlowNeed> need = FlowShares::need_of(offer);
  if (!need) return need.error();
  FlowEntryPtr entry = book_.find(offer.spec.name);
  if (!entry) {
    Result<FlowEntryPtr> offered = offered_entry(line, offer, *need);
    if (!offered) return offered;
    entry = *offered;
  } else if (entry->state() != FlowState::kWaiting || !entry->shown) {
    return errorf(EEXIST, "there is a flow {} already", offer.spec.name);
  } else {
    Result<void> fit = fits(*entry, line, offer);
    if (fit) fit = shares_.make_room(line.peer().ip, *need, true);
    if (!fit) return fit.error();
  }
  entry->need = *need;
  return entry;
}

Result<void> FlowAdmission::fits(const FlowEntry& waiting, const RendezvousLine& line,
                                 const FlowOffer& offer) const {
  const FlowSpec& spec = waiting.spec;
  if (spec.remote && *spec.remote != line.peer().ip) {
    return errorf(EACCES, "{} waits for another address", spec.name);
  }
  const Port* port = fabric_.port(spec.from);
  if (!port || !has_address(*port, line.local())) {
    return errorf(EADDRNOTAVAIL, "{} waits at {}, which does not have {}", spec.name, spec.from,
                  ip_text(line.local()));
  }
  bool read = offer.spec.op == FlowOp::kRead;
  if (read ? !spec.output.empty() : !spec.input.empty()) {
    return errorf(EINVAL, "{} waits for another direction", spec.name);
  }
  if (offer.file && read && spec.input.empty()) {
    return errorf(EINVAL, "{} has no file= here", spec.name);
  }
  bool real_here = !spec.input.empty() || !spec.output.empty();
  if (real_here && !offer.file) {
    return errorf(EINVAL, "{} waits for a real file: {} is missing", spec.name,
                  read ? "out=" : "file=");
  }
  return {};
}

Result<FlowEntryPtr> FlowAdmission::offered_entry(const RendezvousLine& line,
                                                  const FlowOffer& offer, const FlowNeed& need) {
  if (offer.file) {
    return errorf(EACCES, "for a real file somebody here must wait: {} accept PORT …",
                  offer.spec.name);
  }
  Port* port = port_at(fabric_, line.local());
  if (!port) return errorf(EADDRNOTAVAIL, "no port has {}", ip_text(line.local()));
  Result<void> room = shares_.make_room(line.peer().ip, need, false);
  if (!room) return room.error();
  auto entry = std::make_shared<FlowEntry>();
  PortName name{port->host().name(), port->number()};
  entry->spec.name = offer.spec.name;
  entry->spec.from = name.text();
  entry->spec.accepts = true;
  entry->owner = {0, "rocefs"};
  entry->offered = true;
  book_.add(entry);
  return entry;
}

}  // namespace rocefs
