/* Children, threads, and several contexts. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

static void two_contexts(void) {
  int before = open_descriptors();
  struct ibv_context* second = open_device();
  REQUIRE(second);
  CHECK(second->async_fd >= 0 && second->async_fd != context->async_fd);
  struct ibv_pd* own = ibv_alloc_pd(second);
  CHECK(own && !ibv_dealloc_pd(own));
  CHECK(!ibv_close_device(second));
  CHECK(open_descriptors() == before);
}

/* Checks in a child of fork(); returns the number of the failed one, or 0. */
static int use_in_child(struct ibv_qp* qp) {
  errno = 0;
  if (ibv_alloc_pd(context) || errno != EIO) return 1;
  if (ibv_destroy_qp(qp) != EIO) return 2;
  if (ibv_close_device(context)) return 3;
  return 0;
}

static void child(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  pid_t pid = fork();
  if (pid == 0) exit(use_in_child(pair.a));
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  CHECK(!post_send(pair.a, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
  expect_completion(pair.sends, 3);
  destroy_pair(&pair);
}

/* Objects of a parent, one of whose threads makes and destroys others. */
static struct {
  struct ibv_cq* cq;
  struct ibv_srq* srq;
  struct ibv_qp* qp;
  bool ends; /* atomic */
} inherited;

static void* churn_queues(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&inherited.ends, __ATOMIC_RELAXED)) {
    struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_mr* region = ibv_reg_mr(pd, memory, 4096, 0);
    CHECK(cq && region && !ibv_dereg_mr(region) && !ibv_destroy_cq(cq));
  }
  return NULL;
}

/* A child ends what it has inherited, as exit handlers do; it must not wait for a thread that it
 * does not have. Returns the number of the failed check, or 0. */
static int end_inherited(void) {
  alarm(20);
  if (ibv_resize_cq(inherited.cq, 8) != EIO) return 1;
  if (ibv_destroy_qp(inherited.qp) != EIO || ibv_destroy_srq(inherited.srq) != EIO) return 2;
  if (ibv_destroy_cq(inherited.cq) != EIO) return 3;
  struct ibv_qp_init_attr attr = {.send_cq = inherited.cq,
                                  .recv_cq = inherited.cq,
                                  .cap = {1, 1, 1, 1, 0},
                                  .qp_type = IBV_QPT_RC};
  errno = 0;
  if (ibv_create_qp(pd, &attr) || errno != EIO) return 4;
  if (ibv_close_device(context)) return 5;
  context = open_device();
  return context && !ibv_close_device(context) ? 0 : 6;
}

static void child_beside_threads(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
  inherited.cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  inherited.srq = ibv_create_srq(pd, &init);
  REQUIRE(inherited.cq && inherited.srq);
  inherited.qp = make_qp(inherited.cq, inherited.cq, IBV_QPT_RC, NULL);
  pthread_t thread;
  REQUIRE(!pthread_create(&thread, NULL, churn_queues, NULL));
  for (int round = 0; round < 30; ++round) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(end_inherited());
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    if (status) break;
  }
  __atomic_store_n(&inherited.ends, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  CHECK(!ibv_destroy_qp(inherited.qp) && !ibv_destroy_srq(inherited.srq));
  CHECK(!ibv_destroy_cq(inherited.cq));
}

/* Threads that use one queue pair, beside threads that create and destroy others. */
struct crowd {
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  int writes, churns; /* done */
  int failed;
};
enum { kWrites = 20000, kChurns = 200 };

static bool is_done(struct crowd* crowd) {
  return __atomic_load_n(&crowd->writes, __ATOMIC_RELAXED) >= kWrites &&
         __atomic_load_n(&crowd->churns, __ATOMIC_RELAXED) >= kChurns;
}

static void* post(void* argument) {
  struct crowd* crowd = argument;
  while (!is_done(crowd)) {
    int error = post_send(crowd->qp, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8);
    if (error && error != ENOMEM) __atomic_fetch_add(&crowd->failed, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void* poll_queue(void* argument) {
  struct crowd* crowd = argument;
  struct ibv_wc completions[4];
  while (!is_done(crowd)) {
    int count = ibv_poll_cq(crowd->cq, 4, completions);
    for (int i = 0; i < count; ++i)
      if (completions[i].status) __atomic_fetch_add(&crowd->failed, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&crowd->writes, count, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void* churn(void* argument) {
  struct crowd* crowd = argument;
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  REQUIRE(channel);
  while (!is_done(crowd)) {
    struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, channel, 0);
    REQUIRE(cq && !ibv_req_notify_cq(cq, 0));
    struct ibv_qp* qp = make_qp(cq, cq, IBV_QPT_RC, NULL);
    connect_qp(qp, qp->qp_num);
    CHECK(!post_send(qp, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1, 8));
    CHECK(!ibv_destroy_qp(qp));
    CHECK(!ibv_destroy_cq(cq)); /* its event not read, or not sent */
    __atomic_fetch_add(&crowd->churns, 1, __ATOMIC_RELAXED);
  }
  CHECK(!ibv_destroy_comp_channel(channel));
  return NULL;
}

static void threads(void) {
  void* (*const kWork[])(void*) = {post, post, poll_queue, poll_queue, churn, churn};
  struct crowd crowd = {.cq = ibv_create_cq(context, 512, NULL, NULL, 0)};
  REQUIRE(crowd.cq);
  crowd.qp = make_qp(crowd.cq, crowd.cq, IBV_QPT_RC, NULL);
  connect_qp(crowd.qp, crowd.qp->qp_num);
  pthread_t thread[6];
  for (int i = 0; i < 6; ++i) REQUIRE(!pthread_create(&thread[i], NULL, kWork[i], &crowd));
  for (int i = 0; i < 6; ++i) pthread_join(thread[i], NULL);
  CHECK(crowd.failed == 0);
  CHECK(!ibv_destroy_qp(crowd.qp));
  CHECK(!ibv_destroy_cq(crowd.cq));
}

static long times_waited(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

static void work_for_3us(void) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 3000);
}

static void idle_threads(void) {
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_wc wc;
  time_t end = time(NULL) + 60;
  long before = times_waited();
  while (times_waited() == before && time(NULL) < end)
    for (int i = 0; i < 10000; ++i) CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
  CHECK(times_waited() > before);
  before = times_waited();
  for (int i = 0; i < 3000; ++i) {
    work_for_3us();
    CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
  }
  CHECK(times_waited() == before);
  CHECK(!ibv_destroy_cq(cq));
}

static void* wait_on(void* pipe) {
  char byte;
  return read(*(int*)pipe, &byte, 1) == 1 ? pipe : NULL;
}

/* A child opens the device for itself. It does not have its parent's copier: another thread of it
 * is one that may write to what it registers. */
static void child_of_its_own(void) {
  int end[2];
  REQUIRE(!pipe(end));
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    enum { kBytes = 65536 };
    char* pages = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_context* own = open_device();
    struct ibv_pd* own_pd = own ? ibv_alloc_pd(own) : NULL;
    if (pages == MAP_FAILED || !own_pd) _exit(1);
    unsetenv("ROCEFS_SHARE_REGIONS");
    struct ibv_mr* alone = ibv_reg_mr(own_pd, pages, kBytes, IBV_ACCESS_LOCAL_WRITE);
    if (!alone || !is_shared(pages) || ibv_dereg_mr(alone)) _exit(2);
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_on, &end[0])) _exit(3);
    struct ibv_mr* beside = ibv_reg_mr(own_pd, pages, kBytes, IBV_ACCESS_LOCAL_WRITE);
    _exit(beside && !is_shared(pages) ? 0 : 4);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  close(end[0]);
  close(end[1]);
}

/* A daemon has closed its standard streams: what it writes there later must not reach the engine.
 */
static void closed_streams(void) {
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (int fd = 0; fd <= 2; ++fd) close(fd);
    context = open_device();
    pd = context ? ibv_alloc_pd(context) : NULL;
    if (!pd) _exit(1);
    if (!ibv_reg_mr(pd, memory + 1, sizeof memory - 1, 0)) _exit(2); /* brings the copier */
    if (!register_with("1", memory, 4096, 0)) _exit(3);
    for (int fd = 0; fd <= 2; ++fd)
      if (fd != context->cmd_fd && fcntl(fd, F_GETFD) >= 0) _exit(10 + fd);
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

const struct verbs_case kProcessCases[] = {
    {"a device may be opened twice", two_contexts},
    {"a child of fork() is refused, and its parent goes on", child},
    {"a child of fork() waits for no thread of its parent", child_beside_threads},
    {"a child of fork() may open a device for itself", child_of_its_own},
    {"no descriptor of a device is in place of a standard stream", closed_streams},
    {"threads share queues while others make and destroy theirs", threads},
    {"a thread that polls in vain gives its CPU away, one that works between polls does not",
     idle_threads},
    {0},
};
