/* Queries of GIDs.
 *
 * ibv_query_gid_ex() and ibv_query_gid_table() are no verbs of a provider: libibverbs asks the
 * kernel by ioctl(2) on the device file, and else reads sysfs, where it insists on the network
 * interface: under `rocefs enter` the program's network namespace has none of that name. So
 * libibverbs' own calls of ioctl(2) are redirected to a function here, which answers these two
 * queries on files of rocefs, as the kernel does, and passes on all else. An interface that the
 * program cannot see has the index 0: the kernel's word for an entry without one. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

/* Reads ports/PORT/NAME/INDEX of the device; false if there is no text. */
static bool read_file(const struct rocefs_context* context, uint32_t port, const char* name,
                      uint32_t index, char* text, size_t size) {
  const struct ibv_device* device = context->verbs.context.device;
  const struct rocefs_device* ours =
      ROCEFS_CONTAINER(device, const struct rocefs_device, verbs.device);
  char path[IBV_SYSFS_PATH_MAX + 128];
  snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/%u/%s/%u", ours->root, device->name,
           port, name, index);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
  if (fd >= 0) close(fd);
  text[length > 0 ? length : 0] = 0;
  text[strcspn(text, "\n")] = 0;
  return text[0] != 0;
}

static bool parse_gid(const char* text, uint8_t* gid) {
  unsigned words[8];
  if (sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &words[0], &words[1], &words[2], &words[3],
             &words[4], &words[5], &words[6], &words[7]) != 8)
    return false;
  for (int i = 0; i < 8; ++i) {
    gid[2 * i] = (uint8_t)(words[i] >> 8);
    gid[2 * i + 1] = (uint8_t)words[i];
  }
  return true;
}

/* EINVAL for a port or an index that is not there, ENODATA for an empty entry. */
static int read_entry(const struct rocefs_context* context, uint32_t port, uint32_t index,
                      struct ib_uverbs_gid_entry* entry) {
  static const uint8_t kNone[sizeof entry->gid];
  char text[64];
  if (port < 1 || port > context->attr.ports) return EINVAL;
  memset(entry, 0, sizeof *entry);
  entry->gid_index = index;
  entry->port_num = port;
  if (!read_file(context, port, "gids", index, text, sizeof text)) return EINVAL;
  if (!parse_gid(text, (uint8_t*)entry->gid)) return EINVAL;
  if (!memcmp(entry->gid, kNone, sizeof kNone)) return ENODATA;
  entry->gid_type = IB_UVERBS_GID_TYPE_ROCE_V2;
  if (read_file(context, port, "gid_attrs/types", index, text, sizeof text) &&
      strcmp(text, "RoCE v2"))
    entry->gid_type = IB_UVERBS_GID_TYPE_ROCE_V1;
  if (read_file(context, port, "gid_attrs/ndevs", index, text, sizeof text))
    entry->netdev_ifindex = if_nametoindex(text);
  return 0;
}

static struct ib_uverbs_attr* find(struct ib_uverbs_ioctl_hdr* header, uint16_t id) {
  for (unsigned i = 0; i < header->num_attrs; ++i)
    if (header->attrs[i].attr_id == id) return &header->attrs[i];
  return NULL;
}

/* Value of an attribute that is in the command itself. */
static uint64_t value_of(struct ib_uverbs_ioctl_hdr* header, uint16_t id) {
  const struct ib_uverbs_attr* attr = find(header, id);
  uint64_t value = 0;
  if (attr && attr->len <= sizeof value) memcpy(&value, &attr->data, attr->len);
  return value;
}

/* Copies as many octets as both sides have, and clears the rest of the program's. */
static void copy_entry(uint8_t* out, size_t size, const struct ib_uverbs_gid_entry* entry) {
  size_t known = size < sizeof *entry ? size : sizeof *entry;
  memcpy(out, entry, known);
  memset(out + known, 0, size - known);
}

static int query_entry(const struct rocefs_context* context, struct ib_uverbs_ioctl_hdr* header) {
  struct ib_uverbs_attr* out = find(header, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
  struct ib_uverbs_gid_entry entry;
  if (!out || value_of(header, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS)) return EINVAL;
  int error = read_entry(context, (uint32_t)value_of(header, UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
                         (uint32_t)value_of(header, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX), &entry);
  if (error) return error;
  copy_entry((uint8_t*)(uintptr_t)out->data, out->len, &entry);
  out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

/* All entries that are not empty; EINVAL if there are more than the program has room for. */
static int query_table(const struct rocefs_context* context, struct ib_uverbs_ioctl_hdr* header) {
  struct ib_uverbs_attr* out = find(header, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
  struct ib_uverbs_attr* number = find(header, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
  size_t size = value_of(header, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
  uint64_t count = 0, most = out && size ? out->len / size : 0;
  if (most == 0 || !number || number->len < sizeof count) return EINVAL;
  if (value_of(header, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS)) return EINVAL;
  for (uint32_t port = 1; port <= context->attr.ports; ++port) {
    struct ib_uverbs_gid_entry entry;
    int error = 0;
    for (uint32_t index = 0; error != EINVAL; ++index) {
      error = read_entry(context, port, index, &entry);
      if (error) continue;
      if (count == most) return EINVAL;
      copy_entry((uint8_t*)(uintptr_t)out->data + count++ * size, size, &entry);
    }
  }
  memcpy((void*)(uintptr_t)number->data, &count, sizeof count);
  out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  number->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  return 0;
}

static int answer_ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  struct ib_uverbs_ioctl_hdr* header = va_arg(rest, void*);
  va_end(rest);
  const struct rocefs_context* context =
      request == RDMA_VERBS_IOCTL ? rocefs_context_of_file(fd) : NULL;
  bool ours = context && header->object_id == UVERBS_OBJECT_DEVICE;
  int error;
  if (ours && header->method_id == UVERBS_METHOD_QUERY_GID_ENTRY)
    error = query_entry(context, header);
  else if (ours && header->method_id == UVERBS_METHOD_QUERY_GID_TABLE)
    error = query_table(context, header);
  else
    return ioctl(fd, request, header);
  if (!error) return 0;
  errno = error;
  return -1;
}

void rocefs_answer_gid_queries(void) {
  rocefs_hook(NULL, "ioctl", (uintptr_t)answer_ioctl);
}
