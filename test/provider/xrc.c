/* XRC: domains, shared receive queues that packets name, and queue pairs that send or receive. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

static struct ibv_xrcd* open_domain(struct ibv_context* of, int fd, int flags) {
  return ibv_open_xrcd(of, &(struct ibv_xrcd_init_attr){
                               .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                               .fd = fd,
                               .oflags = flags});
}

static struct ibv_srq* make_srq(struct ibv_xrcd* xrcd, struct ibv_cq* cq) {
  return ibv_create_srq_ex(context, &(struct ibv_srq_init_attr_ex){
                                        .attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq});
}

static struct ibv_qp* make_receiver(struct ibv_context* of, struct ibv_xrcd* xrcd) {
  return ibv_create_qp_ex(
      of, &(struct ibv_qp_init_attr_ex){
              .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd});
}

static struct ibv_qp* open_receiver(struct ibv_context* of, struct ibv_xrcd* xrcd, uint32_t qpn) {
  return ibv_open_qp(
      of, &(struct ibv_qp_open_attr){
              .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
              .qp_num = qpn,
              .xrcd = xrcd,
              .qp_type = IBV_QPT_XRC_RECV});
}

static struct ibv_qp* make_sender(struct ibv_cq* cq) {
  return ibv_create_qp_ex(context,
                          &(struct ibv_qp_init_attr_ex){
                              .send_cq = cq,
                              .cap = {.max_send_wr = kDepth, .max_send_sge = 1},
                              .qp_type = IBV_QPT_XRC_SEND,
                              .sq_sig_all = 1,
                              .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                              .pd = pd,
                              .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ});
}

static int send_to(struct ibv_qp* qp, uint32_t srqn, uint64_t wr_id) {
  struct ibv_sge sge = {(uintptr_t)memory, 6, mr->lkey};
  struct ibv_send_wr *bad,
      wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  wr.qp_type.xrc.remote_srqn = srqn;
  return ibv_post_send(qp, &wr, &bad);
}

static int receive_from(struct ibv_srq* srq, uint64_t wr_id) {
  struct ibv_sge sge = {(uintptr_t)memory + kReceiveAt, kReceiveSize, mr->lkey};
  struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
  return ibv_post_srq_recv(srq, &wr, &bad);
}

static void messages(void) {
  struct ibv_cq *sends = ibv_create_cq(context, 16, NULL, NULL, 0),
                *receives = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_xrcd* xrcd = open_domain(context, -1, O_CREAT);
  REQUIRE(sends && receives && xrcd);
  struct ibv_srq *one = make_srq(xrcd, receives), *other = make_srq(xrcd, receives);
  struct ibv_qp *to = make_receiver(context, xrcd), *from = make_sender(sends);
  REQUIRE(one && other && to && from);
  uint32_t one_number = 0, other_number = 0;
  CHECK(!ibv_get_srq_num(one, &one_number) && !ibv_get_srq_num(other, &other_number));
  CHECK(one_number != other_number);
  connect_qp(to, from->qp_num);
  connect_qp(from, to->qp_num);
  CHECK(ibv_close_xrcd(xrcd) == EBUSY);
  CHECK(ibv_destroy_cq(receives) == EBUSY);

  strcpy(memory, "hello");
  memset(memory + kReceiveAt, 0, 8);
  REQUIRE(!receive_from(one, 1) && !receive_from(other, 2));
  REQUIRE(!send_to(from, other_number, 7) && !send_to(from, one_number, 8));
  for (uint64_t i = 0; i < 2; ++i) {
    struct ibv_wc wc = next_completion(receives);
    CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 2 - i && wc.qp_num == to->qp_num);
    CHECK(wc.byte_len == 6);
    expect_completion(sends, 7 + i);
  }
  CHECK(!strcmp(memory + kReceiveAt, "hello"));

  struct ibv_qp_ex* ex = ibv_qp_to_qp_ex(from);
  ibv_wr_start(ex);
  ex->wr_id = 9;
  ibv_wr_rdma_read(ex, mr->rkey, (uintptr_t)memory);
  ibv_wr_set_xrc_srqn(ex, one_number);
  ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory + 64, 6);
  CHECK(!ibv_wr_complete(ex));
  expect_completion(sends, 9);
  CHECK(!strcmp(memory + 64, "hello"));

  struct ibv_recv_wr *bad, wr = {.wr_id = 1};
  CHECK(ibv_post_recv(to, &wr, &bad) == EINVAL && ibv_post_recv(from, &wr, &bad) == EINVAL);
  CHECK(send_to(to, one_number, 1) == EINVAL);
  CHECK(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
  CHECK(!ibv_destroy_srq(one) && !ibv_destroy_srq(other));
  CHECK(!ibv_close_xrcd(xrcd));
  CHECK(!ibv_destroy_cq(sends) && !ibv_destroy_cq(receives));
}

/* More requests than the queue has places: they are given back as receives complete. */
static void places(void) {
  struct ibv_cq *sends = ibv_create_cq(context, 16, NULL, NULL, 0),
                *receives = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_xrcd* xrcd = open_domain(context, -1, O_CREAT);
  struct ibv_srq* srq = make_srq(xrcd, receives);
  struct ibv_qp *to = make_receiver(context, xrcd), *from = make_sender(sends);
  uint32_t number = 0;
  REQUIRE(srq && to && from && !ibv_get_srq_num(srq, &number));
  connect_qp(to, from->qp_num);
  connect_qp(from, to->qp_num);
  for (uint64_t i = 0; i < 64; ++i) {
    REQUIRE(!receive_from(srq, i));
    REQUIRE(!send_to(from, number, i));
    expect_completion(receives, i);
    expect_completion(sends, i);
  }
  CHECK(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
  CHECK(!ibv_destroy_srq(srq) && !ibv_close_xrcd(xrcd));
  CHECK(!ibv_destroy_cq(sends) && !ibv_destroy_cq(receives));
}

/* A queue pair stays while one of those that have opened it is there. */
static void shared(void) {
  char name[] = "/tmp/rocefs-xrc-XXXXXX";
  int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  struct ibv_context* second = open_device();
  REQUIRE(second);
  errno = 0;
  CHECK(!open_domain(context, fd, 0) && errno == EAGAIN);
  struct ibv_xrcd* mine = open_domain(context, fd, O_CREAT | O_EXCL);
  REQUIRE(mine);
  errno = 0;
  CHECK(!open_domain(second, fd, O_CREAT | O_EXCL) && errno == EINVAL);
  struct ibv_xrcd *theirs = open_domain(second, fd, 0), *private = open_domain(second, -1, O_CREAT);
  REQUIRE(theirs && private);

  struct ibv_qp* made = make_receiver(context, mine);
  REQUIRE(made);
  struct ibv_qp* opened = open_receiver(second, theirs, made->qp_num);
  REQUIRE(opened);
  CHECK(opened->qp_num == made->qp_num);
  errno = 0;
  CHECK(!open_receiver(second, private, made->qp_num) && errno == EINVAL);
  errno = 0;
  CHECK(!open_receiver(second, theirs, made->qp_num + 1) && errno == EINVAL);
  CHECK(!move_qp(made, IBV_QPS_INIT, 0));
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  CHECK(!ibv_query_qp(opened, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_INIT);
  CHECK(ibv_close_xrcd(theirs) == EBUSY);
  CHECK(!ibv_destroy_qp(made) && !ibv_close_xrcd(mine));
  CHECK(!ibv_query_qp(opened, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_INIT);
  CHECK(!ibv_destroy_qp(opened) && !ibv_close_xrcd(theirs) && !ibv_close_xrcd(private));
  errno = 0;
  CHECK(!open_domain(context, fd, 0) && errno == EAGAIN); /* it has gone with its last user */
  CHECK(!ibv_close_device(second));
  unlink(name);
  close(fd);
}

static void refused(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_xrcd* xrcd = open_domain(context, -1, O_CREAT);
  struct ibv_srq* srq = make_srq(xrcd, cq);
  REQUIRE(cq && srq);
  errno = 0;
  CHECK(!ibv_open_xrcd(context, &(struct ibv_xrcd_init_attr){.comp_mask = 1}) && errno == EINVAL);
  errno = 0;
  CHECK(!open_domain(context, 1 << 20, O_CREAT) && errno == EBADF);
  errno = 0;
  CHECK(!ibv_open_qp(context, &(struct ibv_qp_open_attr){.comp_mask = 1}) && errno == EINVAL);
  /* A queue pair of another service has no queue of XRC. */
  struct ibv_qp_init_attr init = {
      .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
  errno = 0;
  CHECK(!ibv_create_qp(pd, &init) && errno == EINVAL);
  struct ibv_srq_init_attr basic = {.attr = {.max_wr = 1, .max_sge = 1}};
  struct ibv_srq* other = ibv_create_srq(pd, &basic);
  uint32_t number;
  CHECK(other && ibv_get_srq_num(other, &number) == EINVAL);
  CHECK(!ibv_destroy_srq(other) && !ibv_destroy_srq(srq));
  CHECK(!ibv_close_xrcd(xrcd) && !ibv_destroy_cq(cq));
}

const struct verbs_case kXrcCases[] = {
    {"XRC: messages go to the queue that they name", messages},
    {"XRC: a queue's places are given back", places},
    {"XRC: domains and their queue pairs are shared", shared},
    {"XRC: calls that make no sense are refused", refused},
    {0},
};
