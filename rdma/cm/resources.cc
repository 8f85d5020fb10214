// Text of ids, one a line, for kernel/debug/rocefs/resources.
#include <fmt/format.h>

#include <iterator>

#include "rdma/cm/ucma.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"

namespace rocefs {

void Cma::add_resource(const CmId& id, std::string_view values, std::string& text) const {
  // States of iproute2's rdma (enum rdma_cm_state of the kernel).
  constexpr unsigned kStates[] = {0, 7, 1, 2, 4, 5, 6, 8, 9};
  auto add = [&](const std::string& device, size_t port) {
    fmt::format_to(std::back_inserter(text), "{} cm_id {} port={} ps={} type={} state={} src={}",
                   device, values, port, static_cast<unsigned>(id.space()),
                   2 + static_cast<unsigned>(id.type()), kStates[static_cast<size_t>(id.state())],
                   text_of(id.local()));
    if (id.remote().ip != Ip{}) text += " dst=" + text_of(id.remote());
    text += '\n';
  };
  if (const Port* port = id.port()) return add(port->host().name(), port->number());
  if (id.state() != CmId::State::kListen) return;
  for (const auto& device : fabric_.devices()) {
    if (id.scope().covers(*device)) add(device->name(), 1);
  }
}

std::string Ucma::resources() const {
  std::string text;
  for (const auto& [number, context] : contexts_) {
    if (context->id) {
      cma_.add_resource(*context->id,
                        fmt::format("cm_idn={} pid={}", number, context->channel->owner().pid),
                        text);
    }
  }
  return text;
}

}  // namespace rocefs
