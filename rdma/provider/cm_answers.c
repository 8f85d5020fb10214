/* Checks of the engine's answers to librdmacm: an event carries the address of its id, the
 * destruction of an id waits for the stated number of acknowledgements, and numbers are indices of
 * tables. */
#include <errno.h>
#include <linux/in6.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

#include "rdma/provider/cm_answers.h"
#include "rdma/provider/forks.h"

enum {
  kMaxIds = 1 << 16, /* size of librdmacm's own table */
  kBuckets = 1024,
  kMaxPorts = 2, /* per device */
  /* Constants of <rdma/rdma_cma.h>. */
  kConnectRequest = 4,
  kMulticastJoin = 12,
  kMulticastError = 13,
  kLastEvent = 19,
};

/* Ids, or memberships of multicast groups, by the engine's numbers. An entry that has gone with its
 * engine stays until the number is reused: librdmacm still has what it stands for. */
struct named {
  uint64_t uid;    /* address by which librdmacm names it; 0: not accepted yet */
  uint32_t events; /* events that librdmacm got */
  uint32_t next;   /* in its bucket: 1 + a number, or 0 */
};
static struct table {
  struct named all[kMaxIds];
  uint32_t buckets[kBuckets];
} ids, members;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of both */

static uint32_t* bucket_of(struct table* table, uint64_t uid) {
  return &table->buckets[(uid >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static void forget(struct table* table, uint32_t number) {
  uint32_t* link = bucket_of(table, table->all[number].uid);
  while (*link && *link != number + 1) link = &table->all[*link - 1].next;
  if (*link) *link = table->all[number].next;
  table->all[number] = (struct named){0};
}

static void remember(struct table* table, uint32_t number, uint64_t uid, uint32_t events) {
  forget(table, number);
  uint32_t* bucket = bucket_of(table, uid);
  table->all[number] = (struct named){uid, events, uid ? *bucket : 0};
  if (uid) *bucket = number + 1;
}

static struct named* find(struct table* table, uint64_t uid) {
  uint32_t at = uid ? *bucket_of(table, uid) : 0;
  while (at && table->all[at - 1].uid != uid) at = table->all[at - 1].next;
  return at ? &table->all[at - 1] : NULL;
}

/* Limits the number of events for which librdmacm waits to those that it got. */
static bool count_events(const struct table* table, uint32_t number, void* answer, size_t size) {
  struct rdma_ucm_destroy_id_resp* told = answer;
  if (size < sizeof *told || number >= kMaxIds) return false;
  if (told->events_reported > table->all[number].events)
    told->events_reported = table->all[number].events;
  return true;
}

static bool admit_event(const struct rdma_ucm_event_resp* event, size_t size) {
  if (size < offsetof(struct rdma_ucm_event_resp, reserved) || event->id >= kMaxIds) return false;
  if (event->event > kLastEvent) return false;
  bool of_group = event->event == kMulticastJoin || event->event == kMulticastError;
  struct named* of = find(of_group ? &members : &ids, event->uid);
  if (!of) return false;
  ++of->events;
  if (event->event == kConnectRequest) remember(&ids, event->id, 0, 0);
  return true;
}

static bool is_port(uint64_t guid, uint8_t port) {
  return guid == 0 || (port >= 1 && port <= kMaxPorts);
}

static bool route_can_be(const struct rdma_ucm_query_route_resp* route, size_t size) {
  return size >= offsetof(struct rdma_ucm_query_route_resp, ibdev_index) &&
         is_port(route->node_guid, route->port_num) &&
         route->num_paths <= sizeof route->ib_route / sizeof route->ib_route[0];
}

static bool addresses_can_be(const struct rdma_ucm_query_addr_resp* found, size_t size) {
  return size >= offsetof(struct rdma_ucm_query_addr_resp, ibdev_index) &&
         is_port(found->node_guid, found->port_num) && found->src_size <= sizeof found->src_addr &&
         found->dst_size <= sizeof found->dst_addr;
}

static bool paths_can_be(const struct rdma_ucm_query_path_resp* paths, size_t size) {
  return size >= sizeof *paths &&
         paths->num_paths <= (size - sizeof *paths) / sizeof paths->path_data[0];
}

static bool created(struct table* table, uint64_t uid, const struct rdma_ucm_create_id_resp* made,
                    size_t size) {
  if (size < sizeof *made || made->id >= kMaxIds || uid == 0) return false;
  remember(table, made->id, uid, 0);
  return true;
}

static bool destroyed(struct table* table, uint32_t number, void* answer, size_t size) {
  if (!count_events(table, number, answer, size)) return false;
  forget(table, number);
  return true;
}

/* Copies a command: newer librdmacms have longer ones, older ones shorter. Missing bytes are 0. */
static union said {
  struct rdma_ucm_create_id create;
  struct rdma_ucm_destroy_id destroy;
  struct rdma_ucm_accept accept;
  struct rdma_ucm_query query;
  struct rdma_ucm_join_ip_mcast join_ip;
  struct rdma_ucm_join_mcast join;
} read_command(const void* command, size_t size) {
  union said said;
  memset(&said, 0, sizeof said);
  memcpy(&said, command, size < sizeof said ? size : sizeof said);
  return said;
}

static bool admit(const struct rdma_ucm_cmd_hdr* header, const union said* said, void* answer,
                  size_t size) {
  switch (header->cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return created(&ids, said->create.uid, answer, size);
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
      return created(&members, said->join_ip.uid, answer, size);
    case RDMA_USER_CM_CMD_JOIN_MCAST:
      return created(&members, said->join.uid, answer, size);
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
      return destroyed(&members, said->destroy.id, answer, size);
    case RDMA_USER_CM_CMD_DESTROY_ID:
      return destroyed(&ids, said->destroy.id, answer, size);
    case RDMA_USER_CM_CMD_MIGRATE_ID: /* same place of the id */
      return count_events(&ids, said->destroy.id, answer, size);
    case RDMA_USER_CM_CMD_ACCEPT:
      if (said->accept.id >= kMaxIds) return false;
      /* Commands without parameters end the active side's handshake, and have no address. */
      if (said->accept.conn_param.valid)
        remember(&ids, said->accept.id, said->accept.uid, ids.all[said->accept.id].events);
      return true;
    case RDMA_USER_CM_CMD_GET_EVENT:
      return admit_event(answer, size);
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
      return route_can_be(answer, size);
    case RDMA_USER_CM_CMD_QUERY:
      return said->query.option == RDMA_USER_CM_QUERY_PATH ? paths_can_be(answer, size)
                                                           : addresses_can_be(answer, size);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
      return size >= sizeof(struct ib_uverbs_qp_attr);
  }
  return true;
}

void rocefs_begin_cm_answers(void) {
  rocefs_free_in_child(&mutex);
}

bool rocefs_admit_cm_answer(const void* command, size_t size, void* answer, size_t answer_size) {
  struct rdma_ucm_cmd_hdr header;
  memcpy(&header, command, sizeof header);
  union said said = read_command((const char*)command + sizeof header, size - sizeof header);
  if (answer_size > header.out) return false;
  pthread_mutex_lock(&mutex);
  bool admitted = admit(&header, &said, answer, answer_size);
  pthread_mutex_unlock(&mutex);
  return admitted;
}
