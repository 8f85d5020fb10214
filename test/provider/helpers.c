#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/provider/verbs_test.h"

uint32_t inline_size;

enum { kPatienceSeconds = 60 };

struct ibv_context* open_device(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  struct ibv_context* opened = NULL;
  for (int i = 0; i < count; ++i)
    if (!strcmp(ibv_get_device_name(devices[i]), "mb_0")) opened = ibv_open_device(devices[i]);
  if (devices) ibv_free_device_list(devices);
  return opened;
}

int open_descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  REQUIRE(directory);
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

struct ibv_qp* make_qp(struct ibv_cq* sends, struct ibv_cq* receives, enum ibv_qp_type type,
                       struct ibv_srq* srq) {
  struct ibv_qp_init_attr attr = {.send_cq = sends,
                                  .recv_cq = receives,
                                  .srq = srq,
                                  .cap = {kDepth, kDepth, kMaxSge, kMaxSge, kInline},
                                  .qp_type = type};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  REQUIRE(qp);
  CHECK(attr.cap.max_send_wr == kDepth);
  CHECK(attr.cap.max_inline_data >= kInline);
  inline_size = attr.cap.max_inline_data;
  CHECK(attr.cap.max_recv_wr == (srq ? 0 : kDepth));
  return qp;
}

struct ibv_ah_attr own_address(void) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
  REQUIRE(!ibv_query_gid(context, 1, 1, &attr.grh.dgid));
  attr.grh.sgid_index = 1;
  attr.grh.hop_limit = 64;
  attr.grh.flow_label = 0x12345;
  return attr;
}

static int mask_of(bool datagram, enum ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
             (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      return IBV_QP_STATE |
             (datagram ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN;
    default:
      return IBV_QP_STATE;
  }
}

static int mask_of_reliable(enum ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RTR:
      return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
      return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    default:
      return 0;
  }
}

int move_qp_with(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn, int with,
                 int without) {
  struct ibv_qp_attr attr = {
      .qp_state = state,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = remote_qpn,
      .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC,
      .ah_attr = own_address(),
      .max_rd_atomic = 1,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 1,
      .port_num = 1,
      .timeout = 14,
      .retry_cnt = 7,
      .rnr_retry = 7,
  };
  int mask = mask_of(qp->qp_type == IBV_QPT_UD, state);
  if (qp->qp_type == IBV_QPT_RC) mask |= mask_of_reliable(state);
  if (qp->qp_type == IBV_QPT_XRC_SEND && state == IBV_QPS_RTS) mask |= mask_of_reliable(state);
  if (qp->qp_type == IBV_QPT_XRC_RECV && state == IBV_QPS_RTR) mask |= mask_of_reliable(state);
  if (qp->qp_type == IBV_QPT_XRC_RECV && state == IBV_QPS_RTS) mask |= IBV_QP_TIMEOUT;
  return ibv_modify_qp(qp, &attr, (mask | with) & ~without);
}
int move_qp(struct ibv_qp* qp, enum ibv_qp_state state, uint32_t remote_qpn) {
  return move_qp_with(qp, state, remote_qpn, 0, 0);
}

void connect_qp(struct ibv_qp* qp, uint32_t remote_qpn) {
  REQUIRE(!move_qp(qp, IBV_QPS_INIT, remote_qpn));
  REQUIRE(!move_qp(qp, IBV_QPS_RTR, remote_qpn));
  REQUIRE(!move_qp(qp, IBV_QPS_RTS, remote_qpn));
}

struct pair make_pair(enum ibv_qp_type type) {
  struct pair pair = {.channel = ibv_create_comp_channel(context)};
  REQUIRE(pair.channel);
  pair.sends = ibv_create_cq(context, 64, NULL, pair.channel, 0);
  pair.receives = ibv_create_cq(context, 64, NULL, NULL, 0);
  REQUIRE(pair.sends && pair.receives);
  pair.a = make_qp(pair.sends, pair.receives, type, NULL);
  pair.b = make_qp(pair.sends, pair.receives, type, NULL);
  return pair;
}

void connect_pair(struct pair* pair) {
  connect_qp(pair->a, pair->b->qp_num);
  connect_qp(pair->b, pair->a->qp_num);
}

void destroy_pair(struct pair* pair) {
  if (pair->a) CHECK(!ibv_destroy_qp(pair->a));
  if (pair->b) CHECK(!ibv_destroy_qp(pair->b));
  CHECK(!ibv_destroy_cq(pair->sends));
  CHECK(!ibv_destroy_cq(pair->receives));
  CHECK(!ibv_destroy_comp_channel(pair->channel));
}

int post_send(struct ibv_qp* qp, uint64_t wr_id, int opcode, unsigned flags, int count,
              uint32_t length) {
  struct ibv_sge sges[16];
  for (int i = 0; i < 16; ++i) sges[i] = (struct ibv_sge){(uintptr_t)memory, length, mr->lkey};
  struct ibv_send_wr *bad = NULL, wr = {.wr_id = wr_id,
                                        .sg_list = sges,
                                        .num_sge = count,
                                        .opcode = (enum ibv_wr_opcode)opcode,
                                        .send_flags = flags};
  wr.wr.rdma.remote_addr = (uintptr_t)memory;
  wr.wr.rdma.rkey = mr->rkey;
  int error = ibv_post_send(qp, &wr, &bad);
  CHECK(!error || bad == &wr);
  return error;
}

int post_receive(struct ibv_qp* qp, uint64_t wr_id, int count) {
  struct ibv_sge sges[16];
  for (int i = 0; i < 16; ++i)
    sges[i] = (struct ibv_sge){(uintptr_t)memory + kReceiveAt, kReceiveSize, mr->lkey};
  struct ibv_recv_wr *bad = NULL, wr = {.wr_id = wr_id, .sg_list = sges, .num_sge = count};
  int error = ibv_post_recv(qp, &wr, &bad);
  CHECK(!error || bad == &wr);
  return error;
}

struct ibv_wc next_completion(struct ibv_cq* cq) {
  struct ibv_wc wc;
  time_t end = time(NULL) + kPatienceSeconds;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) REQUIRE(time(NULL) < end);
  REQUIRE(count == 1);
  return wc;
}

void expect_completion(struct ibv_cq* cq, uint64_t wr_id) {
  struct ibv_wc wc = next_completion(cq);
  CHECK(wc.wr_id == wr_id);
  CHECK(wc.status == IBV_WC_SUCCESS);
}

void take_event(struct ibv_comp_channel* channel, struct ibv_cq* cq) {
  struct ibv_cq* told;
  void* cq_context;
  REQUIRE(is_readable(channel->fd, kPatienceSeconds * 1000));
  REQUIRE(!ibv_get_cq_event(channel, &told, &cq_context));
  CHECK(told == cq && cq_context == cq->cq_context);
  ibv_ack_cq_events(told, 1);
}

void await_events_told(void) {
  struct ibv_mr* last = ibv_reg_mr(pd, memory, 8, 0);
  REQUIRE(last);
  CHECK(!ibv_dereg_mr(last));
}

bool is_in_call(int thread, long call) {
  char path[64], text[32] = "";
  long number = -1;
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
  FILE* file = fopen(path, "r");
  if (!file) return true; /* the kernel does not tell */
  bool told = fgets(text, sizeof text, file) && sscanf(text, "%ld", &number) == 1;
  fclose(file);
  return told && number == call;
}

bool is_readable(int fd, int milliseconds) {
  struct pollfd watched = {.fd = fd, .events = POLLIN};
  return poll(&watched, 1, milliseconds) == 1;
}
