/* both_ends NEAR FAR TURNS: WRITEs of 8 octets to and fro between a queue pair of device NEAR and
 * one of FAR, both of this program, which looks for each at its place in memory. Prints the median
 * of half a turn in microseconds. Unlike the two programs of ib_write_lat it keeps one CPU busy, so
 * that a machine with two of them has one for the packet core. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WARM = 1000, SIGNALED = 64, GID = 1, PAGE = 4096 };

struct end {
  struct ibv_context* device;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* region;
  uint64_t* source;         /* number that is sent */
  volatile uint64_t* place; /* number that has come */
  union ibv_gid gid;
};

static void ok(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "both_ends: %s\n", what);
  exit(1);
}

static struct ibv_context* opened(const char* name) {
  struct ibv_context* found = NULL;
  struct ibv_device** all = ibv_get_device_list(NULL);
  for (int i = 0; all && all[i] && !found; ++i) {
    if (strcmp(ibv_get_device_name(all[i]), name) == 0) found = ibv_open_device(all[i]);
  }
  ok(found != NULL, name);
  return found;
}

static void set_up(struct end* end, const char* name) {
  end->device = opened(name);
  end->pd = ibv_alloc_pd(end->device);
  end->cq = ibv_create_cq(end->device, SIGNALED, NULL, NULL, 0);
  end->source = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ok(end->source != MAP_FAILED, "no memory");
  end->region =
      ibv_reg_mr(end->pd, end->source, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  end->place = end->source + PAGE / 2 / sizeof *end->source;
  struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                  .recv_cq = end->cq,
                                  .cap = {2 * SIGNALED, 1, 1, 1, 0},
                                  .qp_type = IBV_QPT_RC};
  end->qp = ibv_create_qp(end->pd, &init);
  ok(end->region && end->qp, "no queue pair");
  ok(ibv_query_gid(end->device, 1, GID, &end->gid) == 0, "no GID");
}

static void connect_to(struct end* end, const struct end* far) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = far->qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = 1};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = far->gid;
  attr.ah_attr.grh.sgid_index = GID;
  attr.ah_attr.grh.hop_limit = 64;
  int failed = ibv_modify_qp(end->qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.qp_state = IBV_QPS_RTR;
  failed |= ibv_modify_qp(end->qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr.qp_state = IBV_QPS_RTS;
  failed |= ibv_modify_qp(end->qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  ok(failed == 0, "the queue pairs cannot be connected");
}

/* Sends `number`, and waits until it is in the far end's memory. */
static void send_number(struct end* end, struct end* far, uint64_t number) {
  *end->source = number;
  struct ibv_sge part = {(uintptr_t)end->source, sizeof number, end->region->lkey};
  struct ibv_send_wr request = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
  struct ibv_send_wr* bad;
  if (number % SIGNALED == 0) request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = (uintptr_t)far->place;
  request.wr.rdma.rkey = far->region->rkey;
  ok(ibv_post_send(end->qp, &request, &bad) == 0, "a WRITE cannot be posted");
  while (*far->place != number) {
  }
  if (number % SIGNALED != 0) return;
  struct ibv_wc done;
  int taken;
  while ((taken = ibv_poll_cq(end->cq, 1, &done)) == 0) {
  }
  ok(taken == 1 && done.status == IBV_WC_SUCCESS, "a WRITE failed");
}

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void* one, const void* other) {
  double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  ok(argc == 4, "usage: both_ends NEAR FAR TURNS");
  struct end near, far;
  set_up(&near, argv[1]);
  set_up(&far, argv[2]);
  connect_to(&near, &far);
  connect_to(&far, &near);
  size_t turns = strtoul(argv[3], NULL, 10);
  double* halves = calloc(turns + 1, sizeof *halves);
  ok(halves != NULL && turns > 0, "no turns");
  for (size_t i = 0; i < WARM + turns; ++i) {
    double begin = now_us();
    send_number(&near, &far, i + 1);
    send_number(&far, &near, i + 1);
    if (i >= WARM) halves[i - WARM] = (now_us() - begin) / 2;
  }
  qsort(halves, turns, sizeof *halves, compare);
  printf("%.2f\n", halves[turns / 2]);
  return 0;
}
