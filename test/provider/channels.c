/* Completion channels and their events. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

/* Queue pair connected to itself, with queues that share one channel. */
struct loop {
  struct ibv_comp_channel* channel;
  struct ibv_cq *sends, *receives;
  struct ibv_qp* qp;
};

static struct loop make_loop(void) {
  struct loop loop = {.channel = ibv_create_comp_channel(context)};
  REQUIRE(loop.channel);
  loop.sends = ibv_create_cq(context, 64, (void*)1, loop.channel, 0);
  loop.receives = ibv_create_cq(context, 64, (void*)2, loop.channel, 0);
  REQUIRE(loop.sends && loop.receives);
  loop.qp = make_qp(loop.sends, loop.receives, IBV_QPT_RC, NULL);
  connect_qp(loop.qp, loop.qp->qp_num);
  return loop;
}

static void send_to_itself(struct loop* loop, unsigned flags) {
  CHECK(!post_receive(loop->qp, 1, 1));
  CHECK(!post_send(loop->qp, 2, IBV_WR_SEND, flags | IBV_SEND_SIGNALED, 1, 8));
  expect_completion(loop->receives, 1);
  expect_completion(loop->sends, 2);
  await_events_told();
}

static void destroy_loop(struct loop* loop) {
  CHECK(!ibv_destroy_qp(loop->qp));
  CHECK(!ibv_destroy_cq(loop->sends));
  CHECK(!ibv_destroy_cq(loop->receives));
  CHECK(!ibv_destroy_comp_channel(loop->channel));
}

/* More channels than a client may have at a time. */
static void many(void) {
  int before = open_descriptors();
  for (int i = 0; i < 1100; ++i) {
    struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
    REQUIRE(channel && channel->fd > 2);
    CHECK(fcntl(channel->fd, F_GETFD) == FD_CLOEXEC);
    CHECK(!(fcntl(channel->fd, F_GETFL) & O_NONBLOCK));
    CHECK(!ibv_destroy_comp_channel(channel));
  }
  CHECK(open_descriptors() == before);
}

static void of_the_next(void) {
  struct loop loop = make_loop();
  send_to_itself(&loop, 0);
  CHECK(!is_readable(loop.channel->fd, 0)); /* not armed */
  CHECK(!ibv_req_notify_cq(loop.sends, 0));
  send_to_itself(&loop, 0);
  take_event(loop.channel, loop.sends);
  send_to_itself(&loop, 0);
  CHECK(!is_readable(loop.channel->fd, 0)); /* armed once, one event */
  destroy_loop(&loop);
}

static void of_solicited(void) {
  struct loop loop = make_loop();
  CHECK(!ibv_req_notify_cq(loop.receives, 1));
  send_to_itself(&loop, 0);
  CHECK(!is_readable(loop.channel->fd, 0));
  send_to_itself(&loop, IBV_SEND_SOLICITED);
  take_event(loop.channel, loop.receives);
  CHECK(!ibv_req_notify_cq(loop.receives, 0));
  CHECK(!ibv_req_notify_cq(loop.receives, 1)); /* arming for less takes nothing back */
  send_to_itself(&loop, 0);
  take_event(loop.channel, loop.receives);
  destroy_loop(&loop);
}

static void of_a_destroyed_queue(void) {
  struct loop loop = make_loop();
  CHECK(!ibv_req_notify_cq(loop.sends, 0));
  CHECK(!ibv_req_notify_cq(loop.receives, 0));
  send_to_itself(&loop, 0); /* two events, which are not read */
  CHECK(!ibv_destroy_qp(loop.qp));
  CHECK(!ibv_destroy_cq(loop.receives));
  take_event(loop.channel, loop.sends);
  await_events_told();
  CHECK(!is_readable(loop.channel->fd, 0));
  CHECK(!ibv_destroy_cq(loop.sends));
  CHECK(!ibv_destroy_comp_channel(loop.channel));
}

static void used_again(void) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  for (int i = 0; i < 3; ++i) {
    struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, channel, 0);
    CHECK(cq);
    CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
    CHECK(!ibv_destroy_cq(cq));
  }
  CHECK(!ibv_destroy_comp_channel(channel));
}

/* Thread that destroys a queue with an event read and not acknowledged. */
struct destroyer {
  struct ibv_cq* cq;
  int thread;
  bool acknowledged, early, ended;
};

static void* destroy_queue(void* argument) {
  struct destroyer* destroyer = argument;
  __atomic_store_n(&destroyer->thread, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
  CHECK(!ibv_destroy_cq(destroyer->cq));
  destroyer->early = !__atomic_load_n(&destroyer->acknowledged, __ATOMIC_ACQUIRE);
  __atomic_store_n(&destroyer->ended, true, __ATOMIC_RELEASE);
  return NULL;
}

static void unacknowledged(void) {
  struct loop loop = make_loop();
  struct ibv_cq* told;
  void* cq_context;
  CHECK(!ibv_req_notify_cq(loop.sends, 0));
  send_to_itself(&loop, 0);
  REQUIRE(!ibv_get_cq_event(loop.channel, &told, &cq_context));
  CHECK(!ibv_destroy_qp(loop.qp));
  struct destroyer destroyer = {.cq = loop.sends};
  pthread_t thread;
  REQUIRE(!pthread_create(&thread, NULL, destroy_queue, &destroyer));
  int number;
  while (!(number = __atomic_load_n(&destroyer.thread, __ATOMIC_ACQUIRE))) {
  }
  while (!__atomic_load_n(&destroyer.ended, __ATOMIC_ACQUIRE) && !is_in_call(number, SYS_futex)) {
  }
  __atomic_store_n(&destroyer.acknowledged, true, __ATOMIC_RELEASE);
  ibv_ack_cq_events(told, 1);
  pthread_join(thread, NULL);
  CHECK(!destroyer.early);
  CHECK(!ibv_destroy_cq(loop.receives));
  CHECK(!ibv_destroy_comp_channel(loop.channel));
}

/* Thread that waits at a channel which another one destroys. */
struct waiter {
  struct ibv_comp_channel* channel;
  int thread;
  int result, error;
};

static void* wait_at_channel(void* argument) {
  struct waiter* waiter = argument;
  struct ibv_cq* cq;
  void* user;
  __atomic_store_n(&waiter->thread, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
  waiter->result = ibv_get_cq_event(waiter->channel, &cq, &user);
  waiter->error = errno;
  return NULL;
}

/* The number of a channel is another's, at which an event waits, when the first one ends. */
static void number_again(void) {
  struct ibv_context* other = open_device();
  REQUIRE(other);
  struct waiter waiter = {.channel = ibv_create_comp_channel(other)};
  pthread_t thread;
  REQUIRE(waiter.channel && !pthread_create(&thread, NULL, wait_at_channel, &waiter));
  int number, fd = waiter.channel->fd;
  while (!(number = __atomic_load_n(&waiter.thread, __ATOMIC_ACQUIRE)) ||
         !is_in_call(number, SYS_recvfrom)) {
  }
  CHECK(!ibv_destroy_comp_channel(waiter.channel));
  struct loop loop = make_loop();
  CHECK(loop.channel->fd == fd);
  CHECK(!ibv_req_notify_cq(loop.sends, 0));
  send_to_itself(&loop, 0);
  CHECK(!ibv_close_device(other));
  pthread_join(thread, NULL);
  CHECK(waiter.result == -1 && waiter.error == EIO);
  take_event(loop.channel, loop.sends);
  destroy_loop(&loop);
}

const struct verbs_case kChannelCases[] = {
    {"channels come and go without end", many},
    {"the next completion is told of, once for each time it was asked for", of_the_next},
    {"of solicited completions alone, and asking for less takes nothing back", of_solicited},
    {"events of a queue that is destroyed go with it, those of others stay", of_a_destroyed_queue},
    {"a channel whose queues have gone serves others", used_again},
    {"a thread that waits at a channel takes no event of one with its number", number_again},
    {"a queue goes when its events are acknowledged, not before", unacknowledged},
    {0},
};
