/* Rules of verbs as tables: each row names the manual page or the IBTA clause (volume 1) from which
 * it is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

enum {
  RC = IBV_QPT_RC,
  UC = IBV_QPT_UC,
  UD = IBV_QPT_UD,
  kFar = 128 << 10,
  kOk = IBV_WC_SUCCESS,
  kNever = -1, /* no completion: the post is refused */
  kWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
  kRead = IBV_ACCESS_REMOTE_READ,
  kAtomic = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

/* Send request on a queue pair whose far end has one receive of kReceiveSize posted. */
static const struct {
  const char* source;
  int type;
  int opcode;
  unsigned flags;
  int sges;
  uint32_t length;        /* per entry */
  int near, far;          /* rights of the requester's memory, and of the named one */
  int offset;             /* added to the named address */
  int error;              /* ibv_post_send()'s */
  int status, far_status; /* of the completions; far_status where the far end receives */
} kPosts[] = {
    {"ibv_post_send(3)", RC, IBV_WR_SEND, 0, 1, 8, 0, 0, 0, 0, kOk, kOk},
    {"ibv_post_send(3)", UC, IBV_WR_SEND, 0, 2, 8, 0, 0, 0, 0, kOk, kOk},
    {"IBTA 10.7.2: no data segment", RC, IBV_WR_SEND, 0, 0, 0, 0, 0, 0, 0, kOk, kOk},
    {"IBTA 9.7.4.1.1: a WRITE of no bytes needs no key", RC, IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 0, 0, 0,
     kOk, kNever},
    {"ibv_post_send(3): of RC alone", UC, IBV_WR_RDMA_READ, 0, 1, 8, kWrite, kRead, 0, EINVAL,
     kNever, kNever},
    {"ibv_post_send(3): of RC alone", UC, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 8, kWrite, kAtomic, 0,
     EINVAL, kNever, kNever},
    {"IBTA 9.4.1.1: SEND with invalidate is of RC", UC, IBV_WR_SEND_WITH_INV, 0, 1, 8, 0, 0, 0,
     EINVAL, kNever, kNever},
    {"ibv_post_send(3): UD only sends", UD, IBV_WR_RDMA_WRITE, 0, 1, 8, 0, kWrite, 0, EINVAL,
     kNever, kNever},
    {"ibv_post_send(3): inline is of SEND and WRITE", RC, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 8,
     kWrite, kRead, 0, EINVAL, kNever, kNever},
    {"ibv_create_qp(3): max_send_sge", RC, IBV_WR_SEND, 0, kMaxSge + 1, 8, 0, 0, 0, EINVAL, kNever,
     kNever},
    {"ibv_create_qp(3): max_inline_data", RC, IBV_WR_SEND, IBV_SEND_INLINE, 1, 4096, 0, 0, 0,
     EINVAL, kNever, kNever},
    {"IBTA 10.6.3.2: WRITE needs remote write", RC, IBV_WR_RDMA_WRITE, 0, 1, 8, 0, kRead, 0, 0,
     IBV_WC_REM_ACCESS_ERR, kNever},
    {"IBTA 10.6.3.2: READ needs remote read", RC, IBV_WR_RDMA_READ, 0, 1, 8, kWrite, kWrite, 0, 0,
     IBV_WC_REM_ACCESS_ERR, kNever},
    {"IBTA 10.6.3.2: an atomic needs remote atomic", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8,
     kWrite, kWrite, 0, 0, IBV_WC_REM_ACCESS_ERR, kNever},
    {"IBTA 10.6.3.1: a READ writes to local memory", RC, IBV_WR_RDMA_READ, 0, 1, 8, 0, kRead, 0, 0,
     IBV_WC_LOC_PROT_ERR, kNever},
    {"IBTA 9.4.5: an atomic is aligned", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, kWrite, kAtomic,
     4, 0, IBV_WC_REM_INV_REQ_ERR, kNever},
    {"IBTA 9.4.5: an atomic has eight bytes", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 4, kWrite,
     kAtomic, 0, 0, IBV_WC_LOC_LEN_ERR, kNever},
    {"IBTA A19: ATOMIC WRITE is of RC", UC, IBV_WR_ATOMIC_WRITE, 0, 1, 8, 0, kWrite, 0, EINVAL,
     kNever, kNever},
    {"IBTA A19: its memory is only read", RC, IBV_WR_ATOMIC_WRITE, 0, 1, 8, 0, kWrite, 0, 0, kOk,
     kNever},
    {"IBTA A19: it may be inline", RC, IBV_WR_ATOMIC_WRITE, IBV_SEND_INLINE, 2, 4, 0, kWrite, 0, 0,
     kOk, kNever},
    {"IBTA A19: it needs remote write", RC, IBV_WR_ATOMIC_WRITE, 0, 1, 8, 0, kAtomic, 0, 0,
     IBV_WC_REM_ACCESS_ERR, kNever},
    {"IBTA A19: it is aligned", RC, IBV_WR_ATOMIC_WRITE, 0, 1, 8, 0, kWrite, 4, 0,
     IBV_WC_REM_INV_REQ_ERR, kNever},
    {"IBTA A19: it has eight bytes", RC, IBV_WR_ATOMIC_WRITE, 0, 1, 4, 0, kWrite, 0, 0,
     IBV_WC_LOC_LEN_ERR, kNever},
    {"IBTA 10.6.3.3: within the region's bounds", RC, IBV_WR_RDMA_WRITE, 0, 1, 8, 0, kWrite, 4090,
     0, IBV_WC_REM_ACCESS_ERR, kNever},
    {"IBTA 9.9.6.2: a receive that is too short", RC, IBV_WR_SEND, 0, 1, kReceiveSize + 1, 0, 0, 0,
     0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR},
    {"IBTA 10.7.3.1: a WRITE takes no receive", UC, IBV_WR_RDMA_WRITE, 0, 1, 8, 0, kWrite, 0, 0,
     kOk, kNever},
    {"IBTA 10.7.3.1: one with an immediate does", UC, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, 8, 0,
     kWrite, 0, 0, kOk, kOk},
    {"IBTA 9.8.2: UC tells the sender nothing", UC, IBV_WR_RDMA_WRITE, 0, 1, 8, 0, kRead, 0, 0, kOk,
     kNever},
    {"IBTA 10.6.6.2: only what was bound is invalidated", RC, IBV_WR_LOCAL_INV, 0, 0, 0, 0, 0, 0, 0,
     IBV_WC_MW_BIND_ERR, kNever},
};

static int post(struct pair* pair, unsigned row, struct ibv_mr* near, struct ibv_mr* far) {
  struct ibv_sge sges[kMaxSge + 1];
  struct ibv_send_wr *bad, wr = {.wr_id = row, .sg_list = sges, .num_sge = kPosts[row].sges};
  for (int i = 0; i <= kMaxSge; ++i)
    sges[i] = (struct ibv_sge){(uintptr_t)near->addr, kPosts[row].length, near->lkey};
  wr.opcode = (enum ibv_wr_opcode)kPosts[row].opcode;
  wr.send_flags = kPosts[row].flags | IBV_SEND_SIGNALED;
  uint64_t to = (uintptr_t)far->addr + (uintptr_t)kPosts[row].offset;
  if (kPosts[row].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
      kPosts[row].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = to;
    wr.wr.atomic.rkey = far->rkey;
  } else {
    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = far->rkey;
  }
  return ibv_post_send(pair->a, &wr, &bad);
}

static void posts(void) {
  for (unsigned row = 0; row < sizeof kPosts / sizeof kPosts[0]; ++row) {
    struct pair pair = make_pair((enum ibv_qp_type)kPosts[row].type);
    struct ibv_mr* near =
        ibv_reg_mr(pd, memory + kReceiveAt + kReceiveSize, 16384, kPosts[row].near);
    struct ibv_mr* far = ibv_reg_mr(pd, memory + kFar, 4096, kPosts[row].far);
    struct ibv_wc wc;
    REQUIRE(near && far);
    connect_pair(&pair);
    REQUIRE(!post_receive(pair.b, 100, 1));
    int error = post(&pair, row, near, far);
    int status = error ? kNever : (int)next_completion(pair.sends).status;
    int far_status =
        kPosts[row].far_status == kNever ? kNever : (int)next_completion(pair.receives).status;
    bool right = error == kPosts[row].error && status == kPosts[row].status &&
                 far_status == kPosts[row].far_status;
    if (!right)
      printf("%s: errno %d, statuses %d and %d\n", kPosts[row].source, error, status, far_status);
    CHECK(right);
    if (status <= 0) CHECK(ibv_poll_cq(pair.sends, 1, &wc) == 0);
    destroy_pair(&pair);
    CHECK(!ibv_dereg_mr(near) && !ibv_dereg_mr(far));
  }
}

/* Transition of a queue pair in `from`; IBTA table 91, 10.3.1 and ibv_modify_qp(3). */
static const struct {
  const char* source;
  int type;
  enum ibv_qp_state from, to;
  int with, without; /* attributes to add to those that the transition needs, or to leave out */
  int error;
} kChanges[] = {
    {"Reset to Init", RC, IBV_QPS_RESET, IBV_QPS_INIT, 0, 0, 0},
    {"Reset to Init needs the port", RC, IBV_QPS_RESET, IBV_QPS_INIT, 0, IBV_QP_PORT, EINVAL},
    {"Reset to Init takes no PSN", RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_RQ_PSN, 0, EINVAL},
    {"Init needs the Q_Key of UD", UD, IBV_QPS_RESET, IBV_QPS_INIT, 0, IBV_QP_QKEY, EINVAL},
    {"no way from Reset to RTR", RC, IBV_QPS_RESET, IBV_QPS_RTR, 0, 0, EINVAL},
    {"no way from Init to RTS", RC, IBV_QPS_INIT, IBV_QPS_RTS, 0, 0, EINVAL},
    {"Init to RTR needs the path", RC, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_AV, EINVAL},
    {"Init to RTR needs the far queue pair", UC, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_DEST_QPN,
     EINVAL},
    {"no alternate path is known", RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_ALT_PATH, 0, EINVAL},
    {"RTR to RTS needs the timeout", RC, IBV_QPS_RTR, IBV_QPS_RTS, 0, IBV_QP_TIMEOUT, EINVAL},
    {"RTR to RTS of UC has none", UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT, 0, EINVAL},
    {"no way back from RTS to RTR", RC, IBV_QPS_RTS, IBV_QPS_RTR, 0, 0, EINVAL},
    {"RTS to SQD", RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, 0, 0},
    {"RTS to SQD may ask for an event", RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0,
     0},
    {"RTR to RTS may not", RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0, EINVAL},
    {"no way from RTR to SQD", RC, IBV_QPS_RTR, IBV_QPS_SQD, 0, 0, EINVAL},
    {"nobody goes to SQE by himself", UC, IBV_QPS_RTS, IBV_QPS_SQE, 0, 0, EINVAL},
    {"Error from anywhere", UD, IBV_QPS_INIT, IBV_QPS_ERR, 0, 0, 0},
    {"from Error to Reset", RC, IBV_QPS_ERR, IBV_QPS_RESET, 0, 0, 0},
    {"from Error nowhere else", RC, IBV_QPS_ERR, IBV_QPS_RTS, 0, 0, EINVAL},
    {"IBV_QP_CUR_STATE that is wrong", RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CUR_STATE, 0, EINVAL},
};

static void changes(void) {
  static const enum ibv_qp_state kWay[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
  for (unsigned row = 0; row < sizeof kChanges / sizeof kChanges[0]; ++row) {
    struct pair pair = make_pair((enum ibv_qp_type)kChanges[row].type);
    enum ibv_qp_state from = kChanges[row].from;
    if (from == IBV_QPS_ERR) CHECK(!move_qp(pair.a, IBV_QPS_ERR, 0));
    for (unsigned i = 0; i < 4 && from != IBV_QPS_ERR && kWay[i] <= from; ++i)
      CHECK(!move_qp(pair.a, kWay[i], pair.b->qp_num));
    int error = move_qp_with(pair.a, kChanges[row].to, pair.b->qp_num, kChanges[row].with,
                             kChanges[row].without);
    if (error != kChanges[row].error) printf("%s: errno %d\n", kChanges[row].source, error);
    CHECK(error == kChanges[row].error);
    CHECK(pair.a->state == (error ? from : kChanges[row].to));
    destroy_pair(&pair);
  }
}

/* Datagram to a queue pair whose Q_Key is the sender's own. */
static const struct {
  const char* source;
  bool nobody; /* sent by an unprivileged user */
  uint32_t own, named;
  int error; /* ibv_modify_qp()'s, which sets the sender's Q_Key */
} kKeys[] = {
    {"IBTA 3.5.3: a controlled Q_Key is not a consumer's to choose", true, 1u << 31, 0, EPERM},
    {"IBTA 3.5.3: any other is", true, ~0u >> 1, ~0u >> 1, 0},
    {"IBTA 10.2.5: a controlled one in a request stands for the own", true, 17, ~0u, 0},
    {"IBTA 10.2.5: the privileged choose", false, 1u << 31 | 17, 1u << 31, 0},
};

static void send_datagram(struct pair* pair, uint32_t qkey) {
  struct ibv_ah_attr address = own_address();
  struct ibv_sge sge = {(uintptr_t)memory, 8, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  wr.wr.ud.ah = ibv_create_ah(pd, &address);
  REQUIRE(wr.wr.ud.ah);
  wr.wr.ud.remote_qpn = pair->b->qp_num;
  wr.wr.ud.remote_qkey = qkey;
  REQUIRE(!post_receive(pair->b, 1, 1) && !ibv_post_send(pair->a, &wr, &bad));
  CHECK(!ibv_destroy_ah(wr.wr.ud.ah));
  expect_completion(pair->receives, 1);
}

static bool key_holds(unsigned row) {
  struct pair pair = make_pair(IBV_QPT_UD);
  struct ibv_qp_attr attr = {.qkey = kKeys[row].own};
  connect_pair(&pair);
  int error = ibv_modify_qp(pair.a, &attr, IBV_QP_QKEY);
  bool right = error == kKeys[row].error;
  if (!right) printf("%s: errno %d\n", kKeys[row].source, error);
  if (right && !error) {
    REQUIRE(!ibv_modify_qp(pair.b, &attr, IBV_QP_QKEY));
    send_datagram(&pair, kKeys[row].named);
  }
  destroy_pair(&pair);
  return right;
}

/* Runs in a process of its own, as an unprivileged user; true as well where no process can become
 * one. */
static bool key_holds_for_nobody(unsigned row) {
  pid_t pid = fork();
  if (pid == 0) {
    if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)) {
      dprintf(STDOUT_FILENO, "part left out: %s: as no ordinary user\n", kKeys[row].source);
      _exit(0);
    }
    prctl(PR_SET_DUMPABLE, 1);
    context = open_device();
    pd = context ? ibv_alloc_pd(context) : NULL;
    mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    _exit(mr && key_holds(row) ? 0 : 1);
  }
  int status = -1;
  return waitpid(pid, &status, 0) == pid && status == 0;
}

static void keys(void) {
  for (unsigned row = 0; row < sizeof kKeys / sizeof kKeys[0]; ++row)
    CHECK(kKeys[row].nobody ? key_holds_for_nobody(row) : key_holds(row));
}

const struct verbs_case kRuleCases[] = {
    {"send requests are refused, or complete, as each rule says", posts},
    {"queue pairs change their state as each rule says", changes},
    {"controlled Q_Keys are set and named as each rule says", keys},
    {0},
};
