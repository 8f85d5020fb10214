/* Threads that pthread_cancel() ends. Each case runs in a child with a device of its own: what such
 * a thread leaves locked, others wait for without end. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

enum { kPatience = 20 };

/* Runs a case in a child, which ends with the number of the line that failed, or with 0. */
static void apart(int (*run)(void)) {
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    alarm(kPatience);
    context = open_device();
    pd = context ? ibv_alloc_pd(context) : NULL;
    _exit(pd ? run() : 1);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#define EXPECT(condition) \
  if (!(condition)) return __LINE__

struct worker {
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  char* pages;
  bool cancelled, passed; /* atomic */
};

static void make_worker(struct worker* worker) {
  *worker = (struct worker){.channel = ibv_create_comp_channel(context)};
  REQUIRE(worker->channel);
  worker->cq = ibv_create_cq(context, 64, NULL, worker->channel, 0);
  REQUIRE(worker->cq && !ibv_req_notify_cq(worker->cq, 0));
  worker->qp = make_qp(worker->cq, worker->cq, IBV_QPT_UD, NULL);
  REQUIRE(!move_qp(worker->qp, IBV_QPS_INIT, 0));
  worker->pages = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(worker->pages != MAP_FAILED);
}

/* Ends the thread, which must not have ended before it was told to. */
static bool cancel(pthread_t thread, struct worker* worker) {
  void* result = NULL;
  if (pthread_cancel(thread)) return false;
  __atomic_store_n(&worker->cancelled, true, __ATOMIC_RELEASE);
  return !pthread_join(thread, &result) && result == PTHREAD_CANCELED;
}

static void await_cancel(struct worker* worker) {
  while (!__atomic_load_n(&worker->cancelled, __ATOMIC_ACQUIRE)) {
  }
}

static bool churn(struct worker* worker) {
  struct ibv_port_attr port;
  struct ibv_recv_wr *bad, receive = {.wr_id = 1};
  struct ibv_mr* shared = register_with("1", worker->pages, 1 << 16, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_mr* moved = ibv_reg_mr(pd, worker->pages + 1, 100, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  struct ibv_cq* cq = channel ? ibv_create_cq(context, 4, NULL, channel, 0) : NULL;
  struct ibv_qp* qp = cq ? make_qp(cq, cq, IBV_QPT_UD, NULL) : NULL;
  bool made = qp && shared && moved && !ibv_resize_cq(cq, 16) &&
              !ibv_query_port(context, 1, &port) && !ibv_post_recv(worker->qp, &receive, &bad);
  return made && !ibv_dereg_mr(moved) && !ibv_dereg_mr(shared) && !ibv_destroy_qp(qp) &&
         !ibv_destroy_cq(cq);
}

static void* use_verbs(void* argument) {
  struct worker* worker = argument;
  await_cancel(worker);
  bool done = churn(worker);
  __atomic_store_n(&worker->passed, done, __ATOMIC_RELEASE);
  pthread_testcancel();
  return NULL;
}

static int in_verbs(void) {
  struct worker worker;
  pthread_t thread;
  make_worker(&worker);
  EXPECT(!pthread_create(&thread, NULL, use_verbs, &worker));
  EXPECT(cancel(thread, &worker));
  EXPECT(__atomic_load_n(&worker.passed, __ATOMIC_ACQUIRE));
  EXPECT(churn(&worker) && !ibv_destroy_qp(worker.qp) && !ibv_destroy_cq(worker.cq));
  return 0;
}
static void verbs(void) {
  apart(in_verbs);
}

/* A usual thread of a server: each event brings the next one. */
static void* serve(void* argument) {
  struct worker* worker = argument;
  struct ibv_cq* cq;
  void* user;
  struct ibv_wc wc;
  while (!ibv_get_cq_event(worker->channel, &cq, &user)) {
    struct ibv_recv_wr *bad, receive = {.wr_id = 1};
    ibv_ack_cq_events(cq, 1);
    ibv_req_notify_cq(cq, 0);
    while (ibv_poll_cq(cq, 1, &wc) > 0) {
    }
    ibv_post_recv(worker->qp, &receive, &bad);
    __atomic_store_n(&worker->passed, true, __ATOMIC_RELEASE);
  }
  return NULL;
}

static int at_work(void) {
  for (int round = 0; round < 200; ++round) {
    struct worker worker;
    pthread_t thread;
    make_worker(&worker);
    EXPECT(!pthread_create(&thread, NULL, serve, &worker));
    if (round % 4) { /* otherwise the thread waits */
      EXPECT(!move_qp(worker.qp, IBV_QPS_ERR, 0));
      struct ibv_recv_wr *bad, receive = {.wr_id = 1};
      EXPECT(!ibv_post_recv(worker.qp, &receive, &bad));
      while (!__atomic_load_n(&worker.passed, __ATOMIC_ACQUIRE)) {
      }
    }
    EXPECT(cancel(thread, &worker));
    EXPECT(!ibv_destroy_qp(worker.qp) && !ibv_destroy_cq(worker.cq));
    EXPECT(!ibv_destroy_comp_channel(worker.channel));
    munmap(worker.pages, 1 << 16);
  }
  return 0;
}
static void waits(void) {
  apart(at_work);
}

const struct verbs_case kCancelCases[] = {
    {"a thread is not cancelled in a verb, but behind it", verbs},
    {"a thread that serves events may be cancelled at any moment", waits},
    {0},
};
