#include "tools/rocefs/netlink/resource_fields.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace rocefs {
namespace {

using Form = ResourceField::Form;

// IPv4:PORT or [IPv6]:PORT, as a struct sockaddr_storage.
sockaddr_storage address_of(const std::string& text) {
  sockaddr_storage storage{};
  size_t colon = text.rfind(':');
  if (colon == text.npos) return storage;
  in_port_t port = htons(static_cast<uint16_t>(std::strtoul(&text[colon + 1], nullptr, 10)));
  if (text[0] == '[') {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = port;
    ::inet_pton(AF_INET6, text.substr(1, colon - 2).c_str(), &address.sin6_addr);
    std::memcpy(&storage, &address, sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr);
    std::memcpy(&storage, &address, sizeof address);
  }
  return storage;
}

void put_field(NetlinkMessage& message, const ResourceField& field,
               const RdmaView::Resource& resource) {
  const std::string& text = resource.text(field.key);
  if (text.empty()) return;
  uint64_t number = std::strtoull(text.c_str(), nullptr, 0);
  switch (field.form) {
    case Form::kU8:
      return message.u8(field.attribute, static_cast<uint8_t>(number));
    case Form::kU32:
      return message.u32(field.attribute, static_cast<uint32_t>(number));
    case Form::kU64:
      return message.u64(field.attribute, number);
    case Form::kAddress:
      sockaddr_storage address = address_of(text);
      return message.put(field.attribute, &address, sizeof address);
  }
}

}  // namespace

const std::vector<ResourceKind>& resource_kinds() {
  static const std::vector<ResourceKind> kKinds = {
      {RDMA_NLDEV_CMD_RES_QP_GET,
       "qp",
       "lqpn",
       RDMA_NLDEV_ATTR_RES_QP,
       RDMA_NLDEV_ATTR_RES_QP_ENTRY,
       {{"port", RDMA_NLDEV_ATTR_PORT_INDEX, Form::kU32},
        {"lqpn", RDMA_NLDEV_ATTR_RES_LQPN, Form::kU32},
        {"rqpn", RDMA_NLDEV_ATTR_RES_RQPN, Form::kU32},
        {"rq_psn", RDMA_NLDEV_ATTR_RES_RQ_PSN, Form::kU32},
        {"sq_psn", RDMA_NLDEV_ATTR_RES_SQ_PSN, Form::kU32},
        {"path_mig_state", RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE, Form::kU8},
        {"type", RDMA_NLDEV_ATTR_RES_TYPE, Form::kU8},
        {"state", RDMA_NLDEV_ATTR_RES_STATE, Form::kU8},
        {"pdn", RDMA_NLDEV_ATTR_RES_PDN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_CQ_GET,
       "cq",
       "cqn",
       RDMA_NLDEV_ATTR_RES_CQ,
       RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
       {{"cqe", RDMA_NLDEV_ATTR_RES_CQE, Form::kU32},
        {"users", RDMA_NLDEV_ATTR_RES_USECNT, Form::kU64},
        {"cqn", RDMA_NLDEV_ATTR_RES_CQN, Form::kU32},
        {"ctxn", RDMA_NLDEV_ATTR_RES_CTXN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_MR_GET,
       "mr",
       "mrn",
       RDMA_NLDEV_ATTR_RES_MR,
       RDMA_NLDEV_ATTR_RES_MR_ENTRY,
       {{"rkey", RDMA_NLDEV_ATTR_RES_RKEY, Form::kU32},
        {"lkey", RDMA_NLDEV_ATTR_RES_LKEY, Form::kU32},
        {"mrlen", RDMA_NLDEV_ATTR_RES_MRLEN, Form::kU64},
        {"mrn", RDMA_NLDEV_ATTR_RES_MRN, Form::kU32},
        {"pdn", RDMA_NLDEV_ATTR_RES_PDN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_PD_GET,
       "pd",
       "pdn",
       RDMA_NLDEV_ATTR_RES_PD,
       RDMA_NLDEV_ATTR_RES_PD_ENTRY,
       {{"users", RDMA_NLDEV_ATTR_RES_USECNT, Form::kU64},
        {"pdn", RDMA_NLDEV_ATTR_RES_PDN, Form::kU32},
        {"ctxn", RDMA_NLDEV_ATTR_RES_CTXN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_CTX_GET,
       "ctx",
       "ctxn",
       RDMA_NLDEV_ATTR_RES_CTX,
       RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
       {{"ctxn", RDMA_NLDEV_ATTR_RES_CTXN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_SRQ_GET,
       "srq",
       "srqn",
       RDMA_NLDEV_ATTR_RES_SRQ,
       RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
       {{"srqn", RDMA_NLDEV_ATTR_RES_SRQN, Form::kU32},
        {"type", RDMA_NLDEV_ATTR_RES_TYPE, Form::kU8},
        {"pdn", RDMA_NLDEV_ATTR_RES_PDN, Form::kU32}}},
      {RDMA_NLDEV_CMD_RES_CM_ID_GET,
       "cm_id",
       "cm_idn",
       RDMA_NLDEV_ATTR_RES_CM_ID,
       RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
       {{"port", RDMA_NLDEV_ATTR_PORT_INDEX, Form::kU32},
        {"lqpn", RDMA_NLDEV_ATTR_RES_LQPN, Form::kU32},
        {"type", RDMA_NLDEV_ATTR_RES_TYPE, Form::kU8},
        {"ps", RDMA_NLDEV_ATTR_RES_PS, Form::kU32},
        {"state", RDMA_NLDEV_ATTR_RES_STATE, Form::kU8},
        {"src", RDMA_NLDEV_ATTR_RES_SRC_ADDR, Form::kAddress},
        {"dst", RDMA_NLDEV_ATTR_RES_DST_ADDR, Form::kAddress},
        {"cm_idn", RDMA_NLDEV_ATTR_RES_CM_IDN, Form::kU32}}},
  };
  return kKinds;
}

void put_resource(NetlinkMessage& message, const ResourceKind& kind,
                  const RdmaView::Resource& resource) {
  for (const ResourceField& field : kind.fields) put_field(message, field, resource);
  if (uint64_t pid = resource.number("pid")) {
    message.u32(RDMA_NLDEV_ATTR_RES_PID, static_cast<uint32_t>(pid));
  } else {
    message.text(RDMA_NLDEV_ATTR_RES_KERN_NAME, "rocefs");  // built-in traffic
  }
}

}  // namespace rocefs
