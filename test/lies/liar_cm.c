#include <errno.h>
#include <linux/in6.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/uapi/cm.h"
#include "test/lies/liar.h"

static struct rdma_ucm_cmd_hdr asked;

static struct reply {
  struct rocefs_cm_answer said;
  union {
    struct rdma_ucm_create_id_resp created;
    struct rdma_ucm_destroy_id_resp destroyed;
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_query_addr_resp addresses;
    struct rdma_ucm_query_path_resp paths;
    char octets[ROCEFS_CM_MAX_ANSWER];
  } u;
} reply;

static void nobody(void) {
  reply.u.event.uid = NOBODY;
}
static void of_no_id(void) {
  reply.u.event.uid = 0;
}
static void of_a_group(void) {
  reply.u.event.event = 12;
}
static void request_of_no_number(void) {
  reply.u.event.event = 4;
  reply.u.event.id = 0x80000001;
}
static void half(void) {
  reply.said.size = 8;
}
static void again(void) {
  reply.said = (struct rocefs_cm_answer){.error = EAGAIN};
}
static void take_all(void) {
  reply.said.take = UINT32_MAX;
}
static void no_number(void) {
  reply.u.created.id = 0x80000001;
}
static void many_events(void) {
  reply.u.destroyed.events_reported = 1000;
}
static void long_address(void) {
  reply.u.addresses.src_size = 60000;
}
static void no_port(void) {
  reply.u.addresses.port_num = 200;
}
static void many_paths(void) {
  reply.u.paths.num_paths = 1 << 24;
}

static const struct {
  const char* name;
  uint32_t command;
  size_t least; /* octets of the answer that is meant */
  void (*tell)(void);
} kLies[] = {
    {"cm-nobody", RDMA_USER_CM_CMD_GET_EVENT, 0, nobody},
    {"cm-of-no-id", RDMA_USER_CM_CMD_GET_EVENT, 0, of_no_id},
    {"cm-of-a-group", RDMA_USER_CM_CMD_GET_EVENT, 0, of_a_group},
    {"cm-request", RDMA_USER_CM_CMD_GET_EVENT, 0, request_of_no_number},
    {"cm-half", RDMA_USER_CM_CMD_GET_EVENT, 0, half},
    {"cm-again", RDMA_USER_CM_CMD_GET_EVENT, 0, again},
    {"cm-take", RDMA_USER_CM_CMD_GET_EVENT, 0, take_all},
    {"cm-number", RDMA_USER_CM_CMD_CREATE_ID, 0, no_number},
    {"cm-destroy", RDMA_USER_CM_CMD_DESTROY_ID, 0, many_events},
    {"cm-address", RDMA_USER_CM_CMD_QUERY, 200, long_address},
    {"cm-port", RDMA_USER_CM_CMD_QUERY, 200, no_port},
    {"cm-paths", RDMA_USER_CM_CMD_QUERY, 0, many_paths},
};

void see_cm_command(const struct msghdr* message) {
  if (message->msg_iovlen == 3 && message->msg_iov[1].iov_len >= sizeof asked)
    memcpy(&asked, message->msg_iov[1].iov_base, sizeof asked);
}

/* From the parts of a message to the reply, or back. */
static void copy(struct msghdr* message, bool back) {
  char* at = (char*)&reply;
  size_t left = sizeof reply;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    struct iovec* part = &message->msg_iov[i];
    size_t size = part->iov_len < left ? part->iov_len : left;
    if (size > 0 && back)
      memcpy(part->iov_base, at, size);
    else if (size > 0)
      memcpy(at, part->iov_base, size);
    at += size;
    left -= size;
  }
}

ssize_t lie_of_cm(struct msghdr* message, ssize_t size) {
  const char* name = getenv("LIE");
  size_t first = message->msg_iov[0].iov_len;
  bool is_reply = message->msg_iovlen == 2 ? first == sizeof reply.said : first == sizeof reply;
  if (!name || !is_reply || size < (ssize_t)sizeof reply.said) return size;
  for (size_t i = 0; i < sizeof kLies / sizeof kLies[0]; ++i) {
    if (strcmp(kLies[i].name, name) || kLies[i].command != asked.cmd) continue;
    copy(message, false);
    if (reply.said.error || reply.said.size < kLies[i].least) return size;
    kLies[i].tell();
    copy(message, true);
    return (ssize_t)(sizeof reply.said + reply.said.size);
  }
  return size;
}
