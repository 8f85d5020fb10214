/* Queries of GIDs, where the program's network namespace has no interface of the device's name. */
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "test/provider/verbs_test.h"

enum { kRoom = 32 };

static void entry_of_a_gid(void) {
  struct ibv_gid_entry entry;
  union ibv_gid gid;
  memset(&entry, 0xff, sizeof entry);
  CHECK(!ibv_query_gid_ex(context, 1, 1, &entry, 0));
  CHECK(!ibv_query_gid(context, 1, 1, &gid));
  CHECK(!memcmp(&entry.gid, &gid, sizeof gid) && gid.raw[10] == 0xff && gid.raw[11] == 0xff);
  CHECK(entry.gid_index == 1 && entry.port_num == 1);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  char name[IF_NAMESIZE];
  CHECK(entry.ndev_ifindex == 0 || if_indextoname(entry.ndev_ifindex, name));
}

/* As the kernel: rdma_get_gid_attr(). */
static void entry_that_is_not_there(void) {
  struct ibv_gid_entry entry;
  CHECK(ibv_query_gid_ex(context, 1, 7, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_ex(context, 1, 1000, &entry, 0) == EINVAL);
  CHECK(ibv_query_gid_ex(context, 2, 0, &entry, 0) == EINVAL);
  CHECK(ibv_query_gid_ex(context, 0, 0, &entry, 0) == EINVAL);
  CHECK(ibv_query_gid_ex(context, 1, 1, &entry, 1) == EINVAL); /* unknown flag */
  union ibv_gid gid, none;
  memset(&none, 0, sizeof none);
  CHECK(!ibv_query_gid(context, 1, 7, &gid) && !memcmp(&gid, &none, sizeof gid));
}

static void table_of_gids(void) {
  struct ibv_gid_entry entries[kRoom], entry;
  ssize_t count = ibv_query_gid_table(context, entries, kRoom, 0);
  CHECK(count >= 2 && count < kRoom);
  for (ssize_t i = 0; i < count; ++i) {
    CHECK(!ibv_query_gid_ex(context, 1, entries[i].gid_index, &entry, 0));
    CHECK(!memcmp(&entry, &entries[i], sizeof entry));
  }
  CHECK(ibv_query_gid_table(context, entries, (size_t)count, 0) == count);
  CHECK(ibv_query_gid_table(context, entries, (size_t)count - 1, 0) == -EINVAL);
  CHECK(ibv_query_gid_table(context, entries, 0, 0) == -EINVAL);
  CHECK(ibv_query_gid_table(context, entries, kRoom, 1) == -EINVAL);
}

const struct verbs_case kGidCases[] = {
    {"a GID is queried with its type, whether or not the program sees its interface",
     entry_of_a_gid},
    {"a GID that is not there is refused as by the kernel", entry_that_is_not_there},
    {"the table of GIDs is what its entries are", table_of_gids},
    {0},
};
