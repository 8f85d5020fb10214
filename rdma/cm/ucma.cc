#include "rdma/cm/ucma.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rdma/cm/sockaddr.h"
#include "rdma/cm/ucma_abi.h"
#include "rdma/cm/ucma_call.h"
#include "rdma/cm/ucma_format.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

using namespace ucma;

// QPN as the program says, unchecked as in the kernel: `cmtime -q` makes numbers up, UCX names a UD
// queue pair for RC, or a number that it has reserved.
CmParameters parameters_of(const ConnectionParameters& from) {
  CmParameters p;
  p.qpn = from.qpn;
  p.qkey = from.qkey;
  p.srq = from.srq != 0;
  p.flow_control = from.flow_control != 0;
  p.responder_resources = std::min(from.responder_resources, kMaxRdAtomic);
  p.initiator_depth = std::min(from.initiator_depth, kMaxRdAtomic);
  p.retry_count = from.retry_count;
  p.rnr_retry_count = from.rnr_retry_count;
  const uint8_t* data = from.private_data.data();
  p.private_data.assign(data, data + from.private_size);
  return p;
}

Result<QpType> type_of(uint16_t space, uint8_t verbs_type) {
  constexpr uint8_t kRc = 2, kUc = 3, kUd = 4;
  switch (static_cast<PortSpace>(space)) {
    case PortSpace::kTcp:
      return QpType::kRc;
    case PortSpace::kUdp:
    case PortSpace::kIpoib:
      return QpType::kUd;
    case PortSpace::kIb:
      if (verbs_type == kRc) return QpType::kRc;
      if (verbs_type == kUc) return QpType::kUc;
      if (verbs_type == kUd) return QpType::kUd;
  }
  return errorf(EINVAL, "port space {:#x} with queue pairs of type {}", space, verbs_type);
}

}  // namespace

Ucma::Ucma(Cma& cma) : cma_(cma) {}

Ucma::~Ucma() {
  channels_.clear();
}

void Ucma::open(uint64_t name, const Credentials& owner, std::function<void()> readable) {
  channels_[name] = std::make_unique<UcmaChannel>(*this, owner, std::move(readable));
}

void Ucma::close(uint64_t name) {
  channels_.erase(name);
}

UcmaChannel* Ucma::channel(uint64_t name) {
  auto found = channels_.find(name);
  return found == channels_.end() ? nullptr : found->second.get();
}

Ucma::Context* Ucma::add(UcmaChannel& channel) {
  Shares::Share share = shares_.take(channel.owner().uid, channel.owner().privileged);
  if (!share) return nullptr;
  while (contexts_.count(next_)) next_ = (next_ + 1) % kMaxIds;
  auto context = std::make_unique<Context>();
  context->number = next_;
  context->channel = &channel;
  context->share = std::move(share);
  next_ = (next_ + 1) % kMaxIds;
  return (contexts_[context->number] = std::move(context)).get();
}

void Ucma::remove(Context& context) {
  for (uint32_t number : context.memberships) memberships_.erase(number);
  by_id_.erase(context.id.get());
  auto kept = contexts_.extract(context.number);  // destruction may look for other ids
}

Ucma::Context* Ucma::find(uint32_t number) {
  auto found = contexts_.find(number);
  return found == contexts_.end() ? nullptr : found->second.get();
}

Ucma::Context* Ucma::find(const CmId& id) {
  auto found = by_id_.find(&id);
  return found == by_id_.end() ? nullptr : found->second;
}

UcmaChannel::UcmaChannel(Ucma& ucma, const Ucma::Credentials& owner, std::function<void()> readable)
    : ucma_(ucma), owner_(owner), readable_(std::move(readable)) {}

// Events go with the channel: no id needs to be looked for among them.
UcmaChannel::~UcmaChannel() {
  in_command_ = true;
  events_.clear();
  for (auto next = ucma_.contexts_.begin(); next != ucma_.contexts_.end();) {
    Context& context = *next->second;
    uint32_t number = next->first;
    if (context.channel == this) ucma_.remove(context);
    next = ucma_.contexts_.upper_bound(number);
  }
}

const UcmaChannel::Handler UcmaChannel::kHandlers[] = {
    &UcmaChannel::create_id,
    &UcmaChannel::destroy_id,
    &UcmaChannel::bind_ip,
    &UcmaChannel::resolve_ip,
    &UcmaChannel::resolve_route,
    &UcmaChannel::query_route,
    &UcmaChannel::connect,
    &UcmaChannel::listen,
    &UcmaChannel::accept,
    &UcmaChannel::reject,
    &UcmaChannel::disconnect,
    &UcmaChannel::init_qp_attr,
    &UcmaChannel::get_event,
    nullptr,
    &UcmaChannel::set_option,
    &UcmaChannel::notify,
    &UcmaChannel::join_ip_multicast,
    &UcmaChannel::leave_multicast,
    &UcmaChannel::migrate_id,
    &UcmaChannel::query,
    &UcmaChannel::bind,
    &UcmaChannel::resolve_address,
    &UcmaChannel::join_multicast,
    &UcmaChannel::resolve_ib_service,
    &UcmaChannel::write_event,
};

Result<UcmaChannel::Reply> UcmaChannel::command(Octets octets, Octets option, UcmaChannel* other) {
  Result<Header> header = read<Header>(octets);
  if (!header) return header.error();
  Octets in = octets.subspan(sizeof *header);
  if (header->in > in.size()) return Error{EINVAL, "the command is shorter than it says"};
  Handler handler = header->command < std::size(kHandlers) ? kHandlers[header->command] : nullptr;
  if (!handler) return errorf(ENOSYS, "there is no command {}", header->command);
  Call call{in.first(header->in), option, header->out, other, {}};
  bool had = !events_.empty();
  in_command_ = true;
  Result<void> done = (this->*handler)(call);
  in_command_ = false;
  call.reply.emptied = had && events_.empty();
  if (!had && !events_.empty()) readable_();
  if (!done) return done.error();
  return std::move(call.reply);
}

Result<UcmaChannel::Context*> UcmaChannel::context_of(uint32_t number) {
  Context* context = ucma_.find(number);
  if (!context || !context->fetched) return errorf(ENOENT, "there is no id {}", number);
  if (context->channel != this) return errorf(EINVAL, "id {} is another channel's", number);
  return context;
}

void UcmaChannel::queue(Waiting waiting) {
  bool first = events_.empty();
  events_.push_back(std::move(waiting));
  if (first && !in_command_) readable_();
}

// Drops events of a new connection before its user has accepted it, as the kernel does.
void UcmaChannel::happened(CmId& id, const CmEvent& event) {
  Context* context = ucma_.find(id);
  if (context && context->uid != 0) queue({context, nullptr, event});
}

void UcmaChannel::incoming(CmId& listener, std::unique_ptr<CmId> id, const CmEvent& event) {
  Context* listening = ucma_.find(listener);
  if (!listening || listening->backlog == 0) return;
  Context* fresh = ucma_.add(*this);
  if (!fresh) return;
  --listening->backlog;
  fresh->fetched = false;
  ucma_.by_id_[id.get()] = fresh;
  fresh->id = std::move(id);
  queue({listening, fresh, event});
}

// Removes the id with its events, and requests that wait at a listener.
void UcmaChannel::forget(Context& context) {
  std::vector<Context*> waiting;
  std::erase_if(events_, [&](const Waiting& one) {
    if (one.of != &context) return one.fresh == &context;
    if (one.fresh) waiting.push_back(one.fresh);
    return true;
  });
  for (Context* fresh : waiting) ucma_.remove(*fresh);
  ucma_.remove(context);
}

Result<void> UcmaChannel::create_id(Call& call) {
  auto asked = read<CreateId>(call.in);
  if (!asked) return asked.error();
  if (call.out < sizeof(IdAnswer)) return Error{ENOSPC, "the answer does not fit"};
  Result<QpType> type = type_of(asked->space, asked->qp_type);
  if (!type) return type.error();
  Context* context = ucma_.add(*this);
  if (!context) return Error{ENOMEM, "there are as many ids as there may be"};
  context->uid = asked->uid;
  auto space = static_cast<PortSpace>(asked->space);
  context->id = std::make_unique<CmId>(ucma_.cma_, space, *type, *this, owner_.scope);
  ucma_.by_id_[context->id.get()] = context;
  return give(IdAnswer{context->number}, call.out, call.reply.bytes);
}

Result<void> UcmaChannel::destroy_id(Call& call) {
  auto asked = read<DestroyId>(call.in);
  if (!asked) return asked.error();
  if (call.out < sizeof(EventsAnswer)) return Error{ENOSPC, "the answer does not fit"};
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  EventsAnswer answer{(*context)->reported};
  forget(**context);
  return give(answer, call.out, call.reply.bytes);
}

Result<void> UcmaChannel::bind_ip(Call& call) {
  auto asked = read<BindIp>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  Result<CmAddress> address = address_of(asked->address.bytes);
  if (!address) return address.error();
  return (*context)->id->bind(*address);
}

Result<void> UcmaChannel::bind(Call& call) {
  auto asked = read<Bind>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  Result<CmAddress> address = address_of(asked->address.bytes, asked->size);
  if (!address) return address.error();
  return (*context)->id->bind(*address);
}

Result<void> UcmaChannel::resolve(CmId& id, const Result<CmAddress>& source,
                                  const Result<CmAddress>& to, uint32_t timeout_ms) {
  if (!source) return source.error();
  if (!to) return to.error();
  if (to->family == CmAddress::Family::kNone) return Error{EINVAL, "no destination is said"};
  if (events_.size() >= kMaxEvents) return errorf(ENOMEM, "{} events wait", events_.size());
  return id.resolve_address(*source, *to, timeout_ms * kMillisecond);
}

Result<void> UcmaChannel::resolve_ip(Call& call) {
  auto asked = read<ResolveIp>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  return resolve(*(*context)->id, address_of(asked->source.bytes),
                 address_of(asked->destination.bytes), asked->timeout_ms);
}

Result<void> UcmaChannel::resolve_address(Call& call) {
  auto asked = read<ResolveAddress>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  Result<CmAddress> source = CmAddress{};
  if (asked->source_size > 0) source = address_of(asked->source.bytes, asked->source_size);
  return resolve(*(*context)->id, source,
                 address_of(asked->destination.bytes, asked->destination_size), asked->timeout_ms);
}

Result<void> UcmaChannel::resolve_route(Call& call) {
  auto asked = read<ResolveRoute>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  return (*context)->id->resolve_route();
}

Result<void> UcmaChannel::query_route(Call& call) {
  auto asked = read<Query>(call.in, offsetof(Query, option));
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  RouteAnswer answer{};
  format_route(*(*context)->id, answer);
  return give(answer, call.out, call.reply.bytes, offsetof(RouteAnswer, device_index));
}

Result<void> UcmaChannel::query(Call& call) {
  auto asked = read<Query>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  const CmId& id = *(*context)->id;
  constexpr size_t kMinAnswer = offsetof(AddressAnswer, device_index);
  AddressAnswer address{};
  PathAnswer path{};
  switch (asked->option) {
    case kQueryAddress:
      format_addresses(id, address);
      return give(address, call.out, call.reply.bytes, kMinAnswer);
    case kQueryGid:
      format_gids(id, address);
      return give(address, call.out, call.reply.bytes, kMinAnswer);
    case kQueryPath:
      format_path(id, path);
      return give(path, call.out, call.reply.bytes, offsetof(PathAnswer, path));
    default:
      return errorf(ENOSYS, "there is no query {}", asked->option);
  }
}

Result<void> UcmaChannel::connect(Call& call) {
  auto asked = read<Connect>(call.in, offsetof(Connect, ece));
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (asked->parameters.valid == 0) return Error{EINVAL, "the parameters are not valid"};
  return (*context)->id->connect(parameters_of(asked->parameters));
}

Result<void> UcmaChannel::listen(Call& call) {
  auto asked = read<Listen>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  bool sensible = asked->backlog > 0 && asked->backlog <= kMaxBacklog;
  // Delivers at once requests that have waited for a listener.
  uint32_t before = std::exchange((*context)->backlog, sensible ? asked->backlog : kMaxBacklog);
  Result<void> listens = (*context)->id->listen();
  if (!listens) (*context)->backlog = before;
  return listens;
}

Result<void> UcmaChannel::accept(Call& call) {
  auto asked = read<Accept>(call.in, offsetof(Accept, ece));
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (asked->parameters.valid == 0) return (*context)->id->accept(std::nullopt);
  Result<void> accepted = (*context)->id->accept(parameters_of(asked->parameters));
  if (accepted) (*context)->uid = asked->uid;
  return accepted;
}

Result<void> UcmaChannel::reject(Call& call) {
  auto asked = read<Reject>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (asked->reason != 0 && asked->reason != cm::kConsumerReject &&
      asked->reason != cm::kVendorOptionNotSupported) {
    return errorf(EINVAL, "{} is no reason of a program's", asked->reason);
  }
  Octets data(asked->private_data.data(), asked->private_size);
  return (*context)->id->reject(asked->reason, data);
}

Result<void> UcmaChannel::disconnect(Call& call) {
  auto asked = read<Disconnect>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  return (*context)->id->disconnect();
}

Result<void> UcmaChannel::init_qp_attr(Call& call) {
  auto asked = read<InitQpAttr>(call.in);
  if (!asked) return asked.error();
  if (call.out < sizeof(QpAttr)) return Error{ENOSPC, "the answer does not fit"};
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (asked->state > static_cast<uint32_t>(QpState::kError)) {
    return errorf(EINVAL, "{} is no state", asked->state);
  }
  auto to = static_cast<QpState>(asked->state);
  uint32_t mask = 0;
  const CmId& id = *(*context)->id;
  Result<QpAttributes> attributes = id.attributes(to, mask);
  if (!attributes) return attributes.error();
  QpAttr answer{};
  format_attributes(*id.port(), to, *attributes, mask, answer);
  return give(answer, call.out, call.reply.bytes);
}

Result<void> UcmaChannel::set_option(Call& call) {
  auto asked = read<SetOption>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  CmId& id = *(*context)->id;
  if (asked->level != kLevelId || asked->name > kAckTimeout) {
    return errorf(ENOSYS, "there is no option {} of level {}", asked->name, asked->level);
  }
  bool octet = asked->name == kTos || asked->name == kAckTimeout;
  int32_t value = 0;
  size_t wanted = octet ? 1 : sizeof value;
  if (call.option.size() != wanted || asked->size != wanted) {
    return errorf(EINVAL, "option {} has {} octets", asked->name, wanted);
  }
  std::memcpy(&value, call.option.data(), wanted);
  switch (asked->name) {
    case kTos:
      id.set_traffic_class(static_cast<uint8_t>(value));
      return {};
    case kReuseAddress:
      return id.set_reuse_address(value != 0);
    case kFamilyOnly:
      return id.set_family_only(value != 0);
    default:
      return id.set_ack_timeout(static_cast<uint8_t>(value));
  }
}

// Channel of the command is the id's new one.
Result<void> UcmaChannel::migrate_id(Call& call) {
  auto asked = read<MigrateId>(call.in);
  if (!asked) return asked.error();
  if (call.out < sizeof(EventsAnswer)) return Error{ENOSPC, "the answer does not fit"};
  UcmaChannel* from = call.other;
  if (!from) return Error{EINVAL, "the other file is no channel of this process"};
  Result<Context*> found = from->context_of(asked->id);
  if (!found) return found.error();
  Context& context = **found;
  EventsAnswer answer{context.reported};
  if (from != this) {
    bool had = !from->events_.empty();
    context.channel = this;
    context.id->set_user(*this);
    auto moves = [&](const Waiting& one) { return one.of == &context; };
    for (const Waiting& one : from->events_) {
      if (!moves(one)) continue;
      if (one.fresh) one.fresh->channel = this;
      if (one.fresh) one.fresh->id->set_user(*this);
      events_.push_back(one);
    }
    std::erase_if(from->events_, moves);
    call.reply.other_emptied = had && from->events_.empty();
  }
  return give(answer, call.out, call.reply.bytes);
}

}  // namespace rocefs
