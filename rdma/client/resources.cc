// Text of a client's objects, one a line, for kernel/debug/rocefs/resources.
#include <fmt/format.h>

#include <iterator>

#include "rdma/client/client.h"
#include "rdma/client/clients.h"

namespace rocefs {
namespace {

// A queue pair with what libibverbs would be told of it.
std::string queue_pair_text(Qp& qp, const Port& port) {
  rocefs_qp_attr attributes{};
  describe(qp.attributes(), qp.state(), port, attributes);
  std::string text =
      fmt::format("lqpn={} port={} type={} state={} sq_psn={}", qp.number(), port.number(),
                  ibv_type_of(qp.type()), attributes.state, attributes.send_psn);
  if (qp.type() == QpType::kUd) return text;
  return text + fmt::format(" rqpn={} rq_psn={} path_mig_state={}", attributes.remote_qpn,
                            attributes.receive_psn, attributes.path_migration);
}

}  // namespace

void Client::add_resources(std::string& text, std::unordered_set<const Qp*>& listed) {
  if (!device_) return;
  auto add = [&](std::string_view kind, const std::string& values) {
    fmt::format_to(std::back_inserter(text), "{} {}{}{} ctxn={} pid={} comm={}\n", device_->name(),
                   kind, values.empty() ? "" : " ", values, number_, process_->credentials().pid,
                   comm_);
  };
  add("ctx", "");
  pds_.each([&](const Pd& pd) { add("pd", fmt::format("pdn={} users={}", pd.number, pd.users)); });
  cqs_.each([&](const ClientCq& cq) {
    add("cq", fmt::format("cqn={} cqe={} users={}", cq.number(), cq.entries(), cq.users));
  });
  // Without the keys, by which others could reach the memory.
  mrs_.each([&](const Mr& mr) {
    const MemoryRegion* region = device_->memory().find(mr.key);
    add("mr", fmt::format("mrn={} mrlen={} pdn={}", mr.key >> 8, region ? region->length : 0,
                          mr.pd->number));
  });
  srqs_.each([&](const ClientSrq& srq) {
    add("srq", fmt::format("srqn={} type={:d} pdn={}", srq.number(), srq.is_xrc(), srq.pd()));
  });
  qps_.each([&](ClientQp& one) {
    Qp& qp = one.qp();
    if (!listed.insert(&qp).second) return;  // of XRC, and another program has it open too
    const Pd* pd = pds_.find(one.created().pd);
    add("qp", queue_pair_text(qp, device_->port(qp.attributes().port)) +
                  (pd ? fmt::format(" pdn={}", pd->number) : ""));
  });
}

std::string Clients::resources() {
  std::string text;
  std::unordered_set<const Qp*> listed;
  for (auto& [id, entry] : clients_) entry.client->add_resources(text, listed);
  for (const auto& device : fabric_.devices()) {
    if (!device->present()) continue;
    device->qps().each([&](Qp& qp) {
      if (listed.count(&qp)) return;
      fmt::format_to(std::back_inserter(text), "{} qp {}\n", device->name(),
                     queue_pair_text(qp, device->port(qp.attributes().port)));
    });
  }
  return text;
}

}  // namespace rocefs
