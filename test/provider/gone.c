/* Threads that wait while the device leaves, or the engine dies. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/provider/verbs_test.h"

/* Results of the threads. */
static struct {
  struct ibv_comp_channel* channel;
  struct ibv_cq *idle, *busy;
  bool channel_ended, async_ended, fatal;
  int flushed, poll_error, arm_error;
} gone;

static void* wait_for_completion_event(void* unused) {
  struct ibv_cq* cq;
  void* cq_context;
  (void)unused;
  gone.channel_ended = ibv_get_cq_event(gone.channel, &cq, &cq_context) == -1;
  return NULL;
}

static void* wait_for_async_event(void* unused) {
  struct ibv_async_event event;
  (void)unused;
  while (!ibv_get_async_event(context, &event)) {
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) gone.fatal = true;
    ibv_ack_async_event(&event);
  }
  gone.async_ended = true;
  return NULL;
}

static void* spin(void* unused) {
  struct ibv_wc wc;
  (void)unused;
  while ((gone.poll_error = ibv_poll_cq(gone.busy, 1, &wc)) >= 0)
    gone.flushed += gone.poll_error == 1 && wc.status == IBV_WC_WR_FLUSH_ERR;
  return NULL;
}

static void check_refused_afterwards(struct ibv_qp* qp) {
  errno = 0;
  CHECK(!ibv_alloc_pd(context) && errno == EIO);
  CHECK(!ibv_create_comp_channel(context));
  CHECK(post_send(qp, 1, IBV_WR_SEND, 0, 1, 8) == EIO);
  CHECK(post_receive(qp, 1, 1) == EIO);
  CHECK(ibv_req_notify_cq(gone.idle, 0) == EIO);
  struct ibv_port_attr port;
  CHECK(ibv_query_port(context, 1, &port) == EIO);
}

/* Destruction succeeds on a device that has left, if the program wants it so. */
static void check_destroyed(struct ibv_qp* qp) {
  int expected = getenv("RDMAV_ALLOW_DISASSOC_DESTROY") ? 0 : EIO;
  CHECK(ibv_destroy_qp(qp) == expected);
  if (!expected) {
    CHECK(!ibv_destroy_cq(gone.idle));
    CHECK(!ibv_destroy_cq(gone.busy));
    CHECK(!ibv_destroy_comp_channel(gone.channel));
    CHECK(!ibv_dereg_mr(mr));
    CHECK(!ibv_dealloc_pd(pd));
  }
  CHECK(!ibv_close_device(context));
}

/* A program that polls and reads without waiting must learn that nothing will come. */
static void check_ended(void) {
  struct ibv_async_event event;
  struct ibv_cq* cq;
  void* cq_context;
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(is_readable(gone.channel->fd, 0) && is_readable(context->async_fd, 0));
    errno = EAGAIN;
    CHECK(ibv_get_cq_event(gone.channel, &cq, &cq_context) == -1 && errno == EIO);
    errno = EAGAIN;
    CHECK(ibv_get_async_event(context, &event) == -1 && errno == EIO);
    CHECK(!fcntl(gone.channel->fd, F_SETFL, O_NONBLOCK));
    CHECK(!fcntl(context->async_fd, F_SETFL, O_NONBLOCK));
  }
}

static void wait_until_gone(void) {
  void* (*const kWaits[])(void*) = {wait_for_completion_event, wait_for_async_event, spin};
  gone.channel = ibv_create_comp_channel(context);
  REQUIRE(gone.channel);
  gone.idle = ibv_create_cq(context, 64, NULL, gone.channel, 0);
  gone.busy = ibv_create_cq(context, 64, NULL, NULL, 0);
  REQUIRE(gone.idle && gone.busy);
  struct ibv_qp* qp = make_qp(gone.idle, gone.busy, IBV_QPT_RC, NULL);
  connect_qp(qp, qp->qp_num);
  for (unsigned i = 0; i < kDepth; ++i) REQUIRE(!post_receive(qp, i, 1));
  pthread_t thread[3];
  for (int i = 0; i < 3; ++i) REQUIRE(!pthread_create(&thread[i], NULL, kWaits[i], NULL));
  puts("ready");
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  CHECK(gone.channel_ended);
  CHECK(gone.async_ended);
  check_ended();
  CHECK(gone.poll_error == -EIO);
  check_refused_afterwards(qp);
  check_destroyed(qp);
}

static void leaving(void) {
  wait_until_gone();
  CHECK(gone.fatal);
  CHECK(gone.flushed == kDepth);
}

static void dying(void) {
  wait_until_gone();
  CHECK(gone.fatal);
  CHECK(gone.flushed == 0);
}

const struct verbs_case kLeavingCases[] = {
    {"a device that leaves flushes what is posted, tells of it, and ends every wait", leaving},
    {0},
};
const struct verbs_case kDyingCases[] = {
    {"an engine that dies ends every wait, and tells of a lost device", dying},
    {0},
};
