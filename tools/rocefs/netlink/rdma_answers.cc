#include "tools/rocefs/netlink/rdma_answers.h"

#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "rdma/uapi/operations.h"
#include "tools/rocefs/netlink/message.h"
#include "tools/rocefs/netlink/resource_fields.h"

namespace rocefs {
namespace {

using Device = RdmaView::Device;
using Resource = RdmaView::Resource;

struct Request {
  nlmsghdr header;
  std::string_view attributes;
  uint32_t port;
  const RdmaView& view;
  bool dumps = false;  // all objects are wanted

  uint16_t command() const { return RDMA_NL_GET_OP(header.nlmsg_type); }
  std::optional<uint64_t> number(uint16_t type) const { return attribute_number(attributes, type); }
};

constexpr size_t kMostMessages = 64;   // of a datagram
constexpr size_t kFullTable = 0xf000;  // an attribute has up to 64 KiB

// Where answers go until there is no room.
class Messages {
 public:
  explicit Messages(const TakeAnswer& take) : take_(take) {}
  void push_back(std::string message) { full_ = full_ || !take_(std::move(message)); }
  bool full() const { return full_; }

 private:
  const TakeAnswer& take_;
  bool full_ = false;
};

NetlinkMessage message_for(const Request& request) {
  uint16_t flags = request.dumps ? NLM_F_MULTI : 0;
  return {request.header.nlmsg_type, flags, request.header.nlmsg_seq, request.port};
}

NetlinkMessage message_for(const Request& request, const Device& device) {
  NetlinkMessage message = message_for(request);
  message.u32(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
  message.text(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
  return message;
}

std::string directory_of(const Device& device) {
  return "class/infiniband/" + device.name;
}
std::string directory_of(const Device& device, uint64_t port) {
  return directory_of(device) + "/ports/" + std::to_string(port);
}

// 0200:4cff:fe6d:6201
uint64_t guid_of(const std::string& text) {
  uint64_t guid = 0;
  for (char c : text) {
    if (c != ':') guid = guid << 4 | std::strtoul(std::string(1, c).c_str(), nullptr, 16);
  }
  return guid;
}

uint8_t small_number(const std::string& text) {
  return static_cast<uint8_t>(std::strtoul(text.c_str(), nullptr, 10));
}

// Flags of ib_uverbs_device_cap_flags, those that libibverbs says of the device.
constexpr uint64_t kCapabilities = ROCEFS_CAPABILITIES
#define ROCEFS_ROW(name, NAME, number, services, packets, traits, completion, builder, capability) \
  | (capability)
    ROCEFS_OPERATIONS(ROCEFS_ROW);
#undef ROCEFS_ROW

std::string device_message(const Request& request, const Device& device) {
  const RdmaView& view = request.view;
  std::string at = directory_of(device);
  NetlinkMessage message = message_for(request, device);
  message.u32(RDMA_NLDEV_ATTR_PORT_INDEX, device.ports);
  message.u64(RDMA_NLDEV_ATTR_CAP_FLAGS, kCapabilities);
  message.text(RDMA_NLDEV_ATTR_FW_VERSION, view.text(at + "/fw_ver"));
  message.u64(RDMA_NLDEV_ATTR_NODE_GUID, guid_of(view.text(at + "/node_guid")));
  message.u64(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid_of(view.text(at + "/sys_image_guid")));
  message.u8(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, small_number(view.text(at + "/node_type")));
  message.u8(RDMA_NLDEV_ATTR_DEV_DIM, 0);
  message.text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
  return std::move(message).finish();
}

std::string port_message(const Request& request, const Device& device, uint32_t port) {
  const RdmaView& view = request.view;
  std::string at = directory_of(device, port);
  NetlinkMessage message = message_for(request, device);
  message.u32(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  message.u8(RDMA_NLDEV_ATTR_PORT_STATE, small_number(view.text(at + "/state")));
  message.u8(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, small_number(view.text(at + "/phys_state")));
  std::string interface = view.text(at + "/gid_attrs/ndevs/0");
  // On a host the kernel knows the interface; elsewhere the tree alone does.
  uint32_t index = ::if_nametoindex(interface.c_str());
  if (index == 0) {
    std::string text = view.text("class/net/" + interface + "/ifindex");
    index = static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
  }
  if (!interface.empty()) {
    message.u32(RDMA_NLDEV_ATTR_NDEV_INDEX, index);
    message.text(RDMA_NLDEV_ATTR_NDEV_NAME, interface);
  }
  return std::move(message).finish();
}

// Counters of a port, with what `put(message, name, index)` adds to each.
template <class Put>
std::string counters_message(const Request& request, const Device& device, uint32_t port, Put put) {
  NetlinkMessage message = message_for(request, device);
  message.u32(RDMA_NLDEV_ATTR_PORT_INDEX, port);
  size_t table = message.begin(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  uint32_t index = 0;
  for (const std::string& name : request.view.names(directory_of(device, port) + "/hw_counters")) {
    if (name == "lifespan") continue;  // a knob of sysfs
    if (message.size() > kFullTable) break;
    size_t entry = message.begin(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
    message.text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
    put(message, name, index++);
    message.end(entry);
  }
  message.end(table);
  return std::move(message).finish();
}

std::string values_message(const Request& request, const Device& device, uint32_t port) {
  const std::string at = directory_of(device, port) + "/hw_counters/";
  auto put = [&](NetlinkMessage& message, const std::string& name, uint32_t) {
    message.u64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
                std::strtoull(request.view.text(at + name).c_str(), nullptr, 10));
  };
  return counters_message(request, device, port, put);
}

constexpr std::array kSummaryKinds = {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"};

// Counts the resources of these devices at once: the file may be long.
void put_summaries(const Request& request, const std::vector<Device>& devices, Messages& out) {
  std::map<std::string, std::array<uint64_t, kSummaryKinds.size()>, std::less<>> counts;
  for (const Device& device : devices) counts[device.name] = {};
  auto count = [&](std::string_view device, std::string_view kind) {
    auto it = counts.find(device);
    size_t index = std::find(kSummaryKinds.begin(), kSummaryKinds.end(), kind) - &kSummaryKinds[0];
    if (it != counts.end() && index < kSummaryKinds.size()) ++it->second[index];
    return false;
  };
  request.view.resources(count, [](const Resource&) { return true; });
  for (const Device& device : devices) {
    NetlinkMessage message = message_for(request, device);
    size_t table = message.begin(RDMA_NLDEV_ATTR_RES_SUMMARY);
    for (size_t kind = 0; kind < kSummaryKinds.size(); ++kind) {
      size_t entry = message.begin(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
      message.text(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, kSummaryKinds[kind]);
      message.u64(RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, counts[device.name][kind]);
      message.end(entry);
    }
    message.end(table);
    out.push_back(std::move(message).finish());
  }
}

RdmaView::Wants wants(const Device& device, const ResourceKind& kind) {
  return [&](std::string_view name, std::string_view one) {
    return name == device.name && one == kind.name;
  };
}

// A dump is in messages of about a page, as the kernel's: a reader's buffer may have 16 KiB.
void dump_resources(const Request& request, const Device& device, const ResourceKind& kind,
                    Messages& out) {
  constexpr size_t kFull = 4096;
  std::optional<NetlinkMessage> message;
  size_t table = 0;
  auto begin = [&] {
    message = message_for(request, device);
    table = message->begin(kind.table);
  };
  auto finish = [&] {
    message->end(table);
    out.push_back(std::move(*message).finish());
  };
  begin();
  request.view.resources(wants(device, kind), [&](const Resource& resource) {
    if (message->size() >= kFull) {
      finish();
      begin();
    }
    size_t entry = message->begin(kind.entry);
    put_resource(*message, kind, resource);
    message->end(entry);
    return !out.full();
  });
  finish();
}

int one_resource(const Request& request, const Device& device, const ResourceKind& kind,
                 Messages& out) {
  auto key = std::find_if(kind.fields.begin(), kind.fields.end(), [&](const ResourceField& field) {
    return std::string_view(field.key) == kind.number;
  });
  std::optional<uint64_t> wanted = request.number(key->attribute);
  if (!wanted) return EINVAL;
  bool found = false;
  request.view.resources(wants(device, kind), [&](const Resource& resource) {
    if (resource.number(kind.number) != *wanted) return true;
    NetlinkMessage message = message_for(request, device);
    put_resource(message, kind, resource);
    out.push_back(std::move(message).finish());
    found = true;
    return false;
  });
  return found ? 0 : ENOENT;
}

// ---- Commands. Each returns 0 or an errno ----

std::optional<Device> device_of(const Request& request) {
  std::optional<uint64_t> wanted = request.number(RDMA_NLDEV_ATTR_DEV_INDEX);
  return wanted ? request.view.device(*wanted) : std::nullopt;
}

std::optional<uint32_t> port_of(const Request& request, const Device& device) {
  std::optional<uint64_t> wanted = request.number(RDMA_NLDEV_ATTR_PORT_INDEX);
  if (!wanted || *wanted < 1 || *wanted > device.ports) return std::nullopt;
  return static_cast<uint32_t>(*wanted);
}

int get_device(const Request& request, Messages& out) {
  if (request.dumps) {
    for (const Device& device : request.view.devices()) {
      if (out.full()) break;
      out.push_back(device_message(request, device));
    }
    return 0;
  }
  std::optional<Device> device = device_of(request);
  if (!device) return EINVAL;
  out.push_back(device_message(request, *device));
  return 0;
}

int get_port(const Request& request, Messages& out) {
  std::optional<Device> device = device_of(request);
  if (!device) return EINVAL;
  if (request.dumps) {
    for (uint32_t port = 1; port <= device->ports && !out.full(); ++port) {
      out.push_back(port_message(request, *device, port));
    }
    return 0;
  }
  std::optional<uint32_t> port = port_of(request, *device);
  if (!port) return EINVAL;
  out.push_back(port_message(request, *device, *port));
  return 0;
}

int get_system(const Request& request, Messages& out) {
  NetlinkMessage message = message_for(request);
  message.u8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);  // shared: devices are in every network namespace
  message.u8(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
  out.push_back(std::move(message).finish());
  return 0;
}

// Counters of a port. Counters of single queue pairs (RES_QP in STAT_RES) there are none: their
// mode is none.
int get_statistics(const Request& request, Messages& out) {
  bool of_queue_pairs = request.number(RDMA_NLDEV_ATTR_STAT_RES).has_value();
  if (request.dumps) {
    if (of_queue_pairs) return 0;
    for (const Device& device : request.view.devices()) {
      for (uint32_t port = 1; port <= device.ports && !out.full(); ++port) {
        out.push_back(values_message(request, device, port));
      }
    }
    return 0;
  }
  std::optional<Device> device = device_of(request);
  std::optional<uint32_t> port = device ? port_of(request, *device) : std::nullopt;
  if (!port) return EINVAL;
  if (!of_queue_pairs) {
    out.push_back(values_message(request, *device, *port));
    return 0;
  }
  if (!request.number(RDMA_NLDEV_ATTR_STAT_MODE)) return ENOENT;
  NetlinkMessage message = message_for(request, *device);
  message.u32(RDMA_NLDEV_ATTR_PORT_INDEX, *port);
  message.u32(RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_NONE);
  out.push_back(std::move(message).finish());
  return 0;
}

// Counters of a port that can be turned off have STAT_HWCOUNTER_DYNAMIC: none has it.
int get_counter_states(const Request& request, Messages& out) {
  std::optional<Device> device = device_of(request);
  std::optional<uint32_t> port = device ? port_of(request, *device) : std::nullopt;
  if (!port) return EINVAL;
  auto put = [](NetlinkMessage& message, const std::string&, uint32_t index) {
    message.u32(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
  };
  out.push_back(counters_message(request, *device, *port, put));
  return 0;
}

int get_summary(const Request& request, Messages& out) {
  if (request.dumps) {
    put_summaries(request, request.view.devices(), out);
    return 0;
  }
  std::optional<Device> device = device_of(request);
  if (!device) return EINVAL;
  put_summaries(request, {*device}, out);
  return 0;
}

int get_resources(const Request& request, Messages& out) {
  auto kind =
      std::find_if(resource_kinds().begin(), resource_kinds().end(),
                   [&](const ResourceKind& one) { return one.command == request.command(); });
  std::optional<Device> device = device_of(request);
  if (!device) return EINVAL;
  if (!request.dumps) return one_resource(request, *device, *kind, out);
  dump_resources(request, *device, *kind, out);
  return 0;
}

// The character device of a client of ib_core, as libibverbs and librdmacm look it up.
int get_character_device(const Request& request, Messages& out) {
  const RdmaView& view = request.view;
  std::string type = attribute_text(request.attributes, RDMA_NLDEV_ATTR_CHARDEV_TYPE).value_or("");
  std::string directory, name, abi;
  if (type == "rdma_cm") {
    name = type;
    directory = "class/misc/rdma_cm";
    abi = directory + "/abi_version";
  } else if (type == "uverbs" || type == "umad") {
    std::optional<Device> device = device_of(request);
    if (!device) return EINVAL;
    bool verbs = type == "uverbs";
    std::optional<uint32_t> port = verbs ? std::optional(1u) : port_of(request, *device);
    std::string nodes =
        directory_of(*device) + "/device/" + (verbs ? "infiniband_verbs" : "infiniband_mad");
    std::vector<std::string> names = view.names(nodes);
    std::erase_if(names, [&](const std::string& node) { return !node.starts_with(type); });
    if (!port || *port > names.size()) return EINVAL;
    name = names[*port - 1];
    directory = nodes + "/" + name;
    abi = verbs ? directory + "/abi_version" : "class/infiniband_mad/abi_version";
  } else {
    return EOPNOTSUPP;
  }
  unsigned first = 0, second = 0;
  if (std::sscanf(view.text(directory + "/dev").c_str(), "%u:%u", &first, &second) != 2) {
    return ENODEV;
  }
  NetlinkMessage message = message_for(request);
  // As the kernel's huge_encode_dev().
  message.u64(RDMA_NLDEV_ATTR_CHARDEV,
              (second & 0xff) | first << 8 | uint64_t{second & ~0xffu} << 12);
  message.u64(RDMA_NLDEV_ATTR_CHARDEV_ABI, std::strtoull(view.text(abi).c_str(), nullptr, 10));
  message.text(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
  out.push_back(std::move(message).finish());
  return 0;
}

int refuse_change(const Request&, Messages&) {
  return EOPNOTSUPP;
}

struct Command {
  uint16_t number;
  bool dumps;  // also for all devices, or all resources
  int (*run)(const Request&, Messages&);
};

constexpr Command kCommands[] = {
    {RDMA_NLDEV_CMD_GET, true, get_device},
    {RDMA_NLDEV_CMD_SET, false, refuse_change},
    {RDMA_NLDEV_CMD_NEWLINK, false, refuse_change},
    {RDMA_NLDEV_CMD_DELLINK, false, refuse_change},
    {RDMA_NLDEV_CMD_PORT_GET, true, get_port},
    {RDMA_NLDEV_CMD_SYS_GET, false, get_system},
    {RDMA_NLDEV_CMD_SYS_SET, false, refuse_change},
    {RDMA_NLDEV_CMD_STAT_GET, true, get_statistics},
    {RDMA_NLDEV_CMD_STAT_GET_STATUS, false, get_counter_states},
    {RDMA_NLDEV_CMD_STAT_SET, false, refuse_change},
    {RDMA_NLDEV_CMD_STAT_DEL, false, refuse_change},
    {RDMA_NLDEV_CMD_RES_GET, true, get_summary},
    {RDMA_NLDEV_CMD_RES_QP_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_CQ_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_MR_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_PD_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_CTX_GET, true, get_resources},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, true, get_resources},
    {RDMA_NLDEV_CMD_GET_CHARDEV, false, get_character_device},
};

std::string error_message(const nlmsghdr& request, uint32_t port, int error) {
  NetlinkMessage message(NLMSG_ERROR, 0, request.nlmsg_seq, port);
  nlmsgerr body{};
  body.error = -error;
  body.msg = request;
  message.raw(&body, sizeof body);
  return std::move(message).finish();
}

std::string done_message(const Request& request) {
  NetlinkMessage message(NLMSG_DONE, NLM_F_MULTI, request.header.nlmsg_seq, request.port);
  int32_t error = 0;
  message.raw(&error, sizeof error);
  return std::move(message).finish();
}

bool is_request(const nlmsghdr& header) {
  return header.nlmsg_flags & NLM_F_REQUEST && header.nlmsg_type >= NLMSG_MIN_TYPE;
}

// As rdma_nl_rcv_msg() and rdma_nl_rcv_skb() of the kernel.
void answer_one(Request request, Messages& out) {
  int error = 0;
  if (is_request(request.header)) {
    auto command = std::find_if(std::begin(kCommands), std::end(kCommands),
                                [&](const auto& one) { return one.number == request.command(); });
    bool known = RDMA_NL_GET_CLIENT(request.header.nlmsg_type) == RDMA_NL_NLDEV &&
                 command != std::end(kCommands);
    request.dumps = known && command->dumps && request.header.nlmsg_flags & NLM_F_DUMP;
    error = known ? command->run(request, out) : EINVAL;
    if (!error && request.dumps) return out.push_back(done_message(request));
  }
  if (error || request.header.nlmsg_flags & NLM_F_ACK) {
    out.push_back(error_message(request.header, request.port, error));
  }
}

// Takes the next message off a datagram; empty at its end, or where it is damaged.
std::string_view take_message(std::string_view& datagram, nlmsghdr& header) {
  if (datagram.size() < NLMSG_HDRLEN) return {};
  std::memcpy(&header, datagram.data(), sizeof header);
  if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size()) return {};
  std::string_view message = datagram.substr(0, header.nlmsg_len);
  datagram.remove_prefix(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  return message;
}

}  // namespace

int answer_rdma_netlink(std::string_view datagram, uint32_t port, const RdmaView& view,
                        const TakeAnswer& take) {
  nlmsghdr header;
  std::string_view counted = datagram;
  for (size_t count = 0; !take_message(counted, header).empty();) {
    if (++count > kMostMessages) return ENOBUFS;
  }
  Messages out(take);
  while (!out.full()) {
    std::string_view message = take_message(datagram, header);
    if (message.empty()) return 0;
    answer_one({header, message.substr(NLMSG_HDRLEN), port, view}, out);
  }
  return ENOBUFS;
}

std::vector<std::string> refuse_rdma_netlink(std::string_view datagram, uint32_t port) {
  std::vector<std::string> out;
  nlmsghdr header;
  while (out.size() < kMostMessages && !take_message(datagram, header).empty()) {
    if (is_request(header)) out.push_back(error_message(header, port, EOPNOTSUPP));
  }
  return out;
}

}  // namespace rocefs
