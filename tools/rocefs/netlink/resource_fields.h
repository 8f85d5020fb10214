// Kinds of RDMA resources: how the values of an object in the file `resources` become attributes.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/rocefs/netlink/message.h"
#include "tools/rocefs/netlink/rdma_view.h"

namespace rocefs {

struct ResourceField {
  enum Form { kU8, kU32, kU64, kAddress };

  const char* key;
  uint16_t attribute;
  Form form;
};

struct ResourceKind {
  uint16_t command;       // of RDMA netlink, RDMA_NLDEV_CMD_RES_…
  const char* name;       // in the file
  const char* number;     // key of its number among the fields
  uint16_t table, entry;  // attributes of a dump
  std::vector<ResourceField> fields;
};

const std::vector<ResourceKind>& resource_kinds();

void put_resource(NetlinkMessage& message, const ResourceKind& kind,
                  const RdmaView::Resource& resource);

}  // namespace rocefs
