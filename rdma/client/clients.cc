#include "rdma/client/clients.h"

#include <algorithm>
#include <cerrno>

#include "core/base/text.h"

namespace rocefs {
namespace {

constexpr TimeNs kPatience = 10 * kMillisecond;  // for a copier

}  // namespace

CoreClients::CoreClients(PacketCore& core, SharedMemory page)
    : core_(core), page_(std::move(page)) {
  core_.set_poller(*this);
}

Result<std::unique_ptr<Clients>> Clients::create(Fabric& fabric, Engine& engine) {
  std::unique_ptr<Clients> clients(new Clients(fabric, engine));
  for (size_t i = 0; i < engine.cores(); ++i) {
    auto page = SharedMemory::create("rocefs-engine", sizeof(rocefs_engine_page),
                                     SharedMemory::Others::kRead);
    if (!page) return page.error();
    clients->cores_.push_back(std::make_unique<CoreClients>(engine.core(i), std::move(*page)));
  }
  return clients;
}

Clients::Clients(Fabric& fabric, Engine& engine) : fabric_(fabric), engine_(engine) {}

Clients::~Clients() = default;

// An unknown device is refused later, wherever the page is.
int Clients::page(std::string_view device) const {
  const Device* found = fabric_.device(device);
  return cores_[found ? found->fabric().core() : 0]->page();
}

void Clients::describe(const Device& device, rocefs_device_attr& out) const {
  out.node_guid = guid_of(device.spec().ports[0]);
  out.max_mr_size = uint64_t{1} << 47;
  out.vendor_id = kPciVendor;
  out.vendor_part_id = kPciDevice;
  out.hw_ver = kHardwareRevision;
  out.max_qp = out.max_srq = ROCEFS_MAX_QUEUES;
  out.max_qp_wr = ROCEFS_MAX_QP_WR;
  out.max_sge = ROCEFS_MAX_SGE;
  out.max_inline = ROCEFS_MAX_INLINE;
  out.max_cq = ROCEFS_MAX_CQ;
  out.max_cqe = ROCEFS_MAX_CQE;
  out.max_mr = ROCEFS_MAX_MR;
  out.max_mw = ROCEFS_MAX_MW;
  out.max_mcast_attach = ROCEFS_MAX_MCAST_ATTACH;
  out.max_pd = ROCEFS_MAX_PD;
  out.max_srq_wr = ROCEFS_MAX_SRQ_WR;
  out.max_rd_atomic = kMaxRdAtomic;
  out.max_ah = ROCEFS_MAX_AH;
  out.ports = static_cast<uint32_t>(device.port_count());
  std::string_view(kFirmwareVersion).copy(out.fw_ver, sizeof out.fw_ver - 1);
}

void Clients::add(uint64_t id, Arrival arrival, Client::Reply reply) {
  auto refuse = [&](const Error& why) { reply(refusal(why)); };
  if (engine_.mode() == ClockMode::kVirtual) {
    return refuse(Error{EOPNOTSUPP, "the clock is virtual: programs cannot run in its time"});
  }
  const char* name = arrival.hello.device;
  Device* device = fabric_.device({name, ::strnlen(name, sizeof arrival.hello.device)});
  if (!device || !device->present()) return refuse(Error{ENODEV, "no such device"});
  std::string comm = program_name({arrival.hello.comm, sizeof arrival.hello.comm});
  auto process = arrival.process;
  Entry& entry = clients_[id];
  CoreClients& core = clients_of(*device);
  entry.polled = &core;
  entry.doorbell = std::make_shared<Fd>(std::move(arrival.doorbell));
  core.core().run([&io = core.core().io(), doorbell = entry.doorbell] {
    io.watch(doorbell->get(), [] {});  // waking the core is enough
  });
  process->set_core(core.core());
  entry.client = std::make_unique<Client>(*device, shared_[device], process,
                                          std::move(arrival.page), std::move(comm), arrival.events);
  core.add(id, *entry.client);
  rocefs_answer answer{};
  describe(*device, answer.u.device);
  process->run([process = process.get(), probe = arrival.hello.probe, answer,
                reply = std::move(reply)]() mutable -> Task {
    bool readable = process->holds(probe, ROCEFS_UAPI_MAGIC);
    return [readable, answer, reply = std::move(reply)]() mutable {
      if (readable) return reply(answer);
      reply(refusal(Error{EPERM, "its memory is not accessible: ptrace(2) access is needed"}));
    };
  });
}

Client* Clients::find(uint64_t id) {
  auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second.client.get();
}

// The doorbell is closed when the core does not watch it any more.
void Clients::remove(uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Entry& entry = found->second;
  PacketCore& core = entry.polled->core();
  core.run(
      [&io = core.io(), doorbell = std::move(entry.doorbell)] { io.unwatch(doorbell->get()); });
  entry.polled->remove(id);
  clients_.erase(found);
}

void Clients::take_results() {
  for (const auto& one : cores_) one->poll(false);
}

void CoreClients::remove(uint64_t id) {
  auto found = clients_.find(id);
  leaving_.push_back(found->second->shared_process());
  clients_.erase(found);
}

Poller::Found CoreClients::poll(bool more) {
  bool any = false;
  uint64_t handed_on = 0;
  bool copying = false;
  for (auto& [id, client] : clients_) {
    any |= client->poll();
    handed_on += client->flush(more);
    copying |= client->process().copying();
  }
  if (copying && !cancel_late_.scheduled()) core_.scheduler().after(cancel_late_, kPatience);
  Found found = handed_on >= Process::kBulkBytes ? Found::kBulk
                : any                            ? Found::kSome
                                                 : Found::kNothing;
  if (leaving_.empty()) return found;
  // Queue pairs being destroyed wait for their memory's moves.
  std::erase_if(leaving_, [](const auto& process) {
    bool over = process->idle();
    process->take_done();
    process->flush();
    return over && !process->busy();
  });
  return found;
}

// Takes moves back that a copier has not begun in time.
void CoreClients::cancel_late(TimeNs) {
  for (auto& [id, client] : clients_) client->process().cancel_late();
}

bool CoreClients::may_sleep() {
  std::atomic_ref(page_.at<rocefs_engine_page>(0)->asleep).store(1);
  for (auto& [id, client] : clients_) {
    if (client->wanted()) return false;
  }
  // A process that becomes idle later wakes the core.
  for (const auto& process : leaving_) {
    if (process->idle() || process->busy()) return false;
  }
  return true;
}

TimeNs CoreClients::lag() {
  TimeNs longest = 0;
  for (auto& [id, client] : clients_) longest = std::max(longest, client->process().lag());
  return longest;
}

void CoreClients::awake() {
  std::atomic_ref(page_.at<rocefs_engine_page>(0)->asleep).store(0, std::memory_order_relaxed);
}

}  // namespace rocefs
