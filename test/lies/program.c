/* A verbs program that uses all kinds of objects on mb_0, alone, and trusts the answers as programs
 * do. Reports failures and then ends with 1. */
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kDepth = 16, kSeconds = 30 };

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_mr* mr;
static struct ibv_comp_channel* channel;
static struct ibv_cq *sends, *receives;
static struct ibv_srq* srq;
static struct ibv_qp* qp;
static union ibv_gid gid;
static __attribute__((aligned(4096))) char memory[1 << 16];

static void need(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static int open_descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  need(directory, "descriptors");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

static void open_device(void) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  need(devices && devices[0], "no device");
  for (int i = 0; devices[i]; ++i)
    if (!strcmp(ibv_get_device_name(devices[i]), "mb_0")) context = ibv_open_device(devices[i]);
  int error = errno;
  ibv_free_device_list(devices);
  errno = error;
  need(context, "open");
}

/* An event that a program without mistakes does not get. */
static void look_for_events(void) {
  struct ibv_async_event event;
  struct pollfd ready = {.fd = context->async_fd, .events = POLLIN};
  if (poll(&ready, 1, 0) == 0) return;
  need(ibv_get_async_event(context, &event) == 0, "asynchronous event");
  if (event.event_type == IBV_EVENT_QP_FATAL) printf("of %u\n", event.element.qp->qp_num);
  ibv_ack_async_event(&event);
  fprintf(stderr, "event: %s\n", ibv_event_type_str(event.event_type));
  exit(1);
}

static void query(void) {
  struct ibv_device_attr attr;
  struct ibv_port_attr port;
  need(!ibv_query_device(context, &attr), "query of the device");
  need(attr.phys_port_cnt > 0, "no port");
  need(!ibv_query_port(context, 1, &port), "query of the port");
  for (int i = 0; i < port.gid_tbl_len; ++i) need(!ibv_query_gid(context, 1, i, &gid), "GID");
  need(!ibv_query_gid(context, 1, 1, &gid), "GID");
}

static void make(void) {
  need((pd = ibv_alloc_pd(context)), "protection domain");
  need((mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE)), "region");
  memset(memory, 1, sizeof memory);
  need((channel = ibv_create_comp_channel(context)), "channel");
  need((sends = ibv_create_cq(context, kDepth, NULL, channel, 0)), "completion queue");
  need((receives = ibv_create_cq(context, kDepth, NULL, NULL, 0)), "completion queue");
  need(!ibv_resize_cq(receives, 2 * kDepth), "another size");
  struct ibv_srq_init_attr shared = {.attr = {.max_wr = kDepth, .max_sge = 1}};
  need((srq = ibv_create_srq(pd, &shared)), "shared receive queue");
  struct ibv_qp_init_attr attr = {.send_cq = sends,
                                  .recv_cq = receives,
                                  .qp_type = IBV_QPT_UD,
                                  .sq_sig_all = 1,
                                  .cap = {kDepth, kDepth, 1, 1, 64}};
  need((qp = ibv_create_qp(pd, &attr)), "queue pair");
  need(attr.cap.max_inline_data <= 4096 && attr.cap.max_recv_wr >= kDepth, "capabilities");
}

static void start(void) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5};
  need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
       "to INIT");
  attr.qp_state = IBV_QPS_RTR;
  need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to RTR");
  attr.qp_state = IBV_QPS_RTS;
  need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "to RTS");
}

static void post_receives(void) {
  struct ibv_sge sge = {(uintptr_t)memory, 4096, mr->lkey};
  struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
  for (int i = 0; i < kDepth; ++i) {
    need(!(errno = ibv_post_srq_recv(srq, &wr, &bad)), "shared receive");
    need(!(errno = ibv_post_recv(qp, &wr, &bad)), "receive");
  }
  need(ibv_post_recv(qp, &wr, &bad) == ENOMEM, "a receive too many");
}

/* Posts a send to itself. */
static void post_send(unsigned flags, uint32_t length) {
  struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1}};
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  need(ah, "address");
  struct ibv_sge sge = {(uintptr_t)memory + 8192, length, mr->lkey};
  struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = flags,
                                 .wr.ud = {.ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = 5}};
  need(!(errno = ibv_post_send(qp, &wr, &bad)), "send");
  need(!ibv_destroy_ah(ah), "address");
}

static void take(struct ibv_cq* cq, int count) {
  struct ibv_wc wc;
  for (time_t end = time(NULL) + kSeconds; count > 0;) {
    int got = ibv_poll_cq(cq, 1, &wc);
    if (got < 0) errno = -got;
    need(got >= 0, "poll");
    need(got == 0 || wc.status == IBV_WC_SUCCESS, "completion");
    need(time(NULL) < end, "no completion");
    count -= got;
  }
}

static void await_event(void) {
  struct ibv_cq* cq = NULL;
  void* unused;
  struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
  need(poll(&ready, 1, kSeconds * 1000) == 1, "no event");
  need(!ibv_get_cq_event(channel, &cq, &unused), "event");
  need(cq == sends, "event of another");
  ibv_ack_cq_events(cq, 1);
}

static void destroy(void) {
  need(!ibv_destroy_qp(qp), "end of the queue pair");
  need(!ibv_destroy_srq(srq), "end of the shared receive queue");
  need(!ibv_destroy_cq(receives) && !ibv_destroy_cq(sends), "end of a completion queue");
  need(!ibv_destroy_comp_channel(channel), "end of the channel");
  need(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd), "end of the region");
  need(!ibv_close_device(context), "close");
}

int main(void) {
  struct ibv_wc wc;
  ibv_free_device_list(ibv_get_device_list(NULL));
  int before = open_descriptors();
  open_device();
  query();
  make();
  look_for_events();
  int early = ibv_poll_cq(sends, 1, &wc);
  if (early < 0) errno = -early;
  need(early == 0, "a completion of nothing");
  start();
  post_receives();
  need(!ibv_req_notify_cq(sends, 0), "arm");
  post_send(0, 64);
  post_send(IBV_SEND_INLINE, 64);
  await_event();
  take(sends, 2);
  take(receives, 2);
  look_for_events();
  destroy();
  errno = 0;
  need(open_descriptors() == before, "descriptors are left");
  puts("all done");
  return 0;
}
