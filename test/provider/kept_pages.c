/* Shared pages that cannot be given back when their region goes, and fork handlers that register
 * memory or end it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/provider/verbs_test.h"

enum { kSize = 65536, kRights = IBV_ACCESS_LOCAL_WRITE };

static char* filled_pages(void) {
  char* pages = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  memset(pages, 'r', kSize);
  return pages;
}
static bool are_filled(const char* pages) {
  for (int i = 0; i < kSize; ++i)
    if (pages[i] != 'r') return false;
  return true;
}
static struct ibv_mr* shared(char* pages) {
  struct ibv_mr* region = register_with("1", pages, kSize, kRights);
  REQUIRE(region && is_shared(pages));
  return region;
}
/* Regions that go take others with them that had to stay. */
static void end_another(void) {
  char* pages = filled_pages();
  CHECK(!ibv_dereg_mr(shared(pages)));
  munmap(pages, kSize);
}

/* /proc/self/maps cannot be opened then: where the pages are is not known. */
static void no_descriptor_left(void) {
  char* pages = filled_pages();
  struct ibv_mr* region = shared(pages);
  struct rlimit before, few = {64, 64};
  REQUIRE(!getrlimit(RLIMIT_NOFILE, &before));
  few.rlim_max = before.rlim_max;
  REQUIRE(!setrlimit(RLIMIT_NOFILE, &few));
  int taken[64], count = 0;
  while (count < 64 && (taken[count] = open("/dev/null", O_RDONLY)) >= 0) ++count;
  CHECK(count < 64 && errno == EMFILE);
  int error = ibv_dereg_mr(region);
  bool kept = are_filled(pages);
  pid_t child = fork();
  if (child == 0) _exit(are_filled(pages) ? 0 : 1);
  while (count > 0) close(taken[--count]);
  REQUIRE(!setrlimit(RLIMIT_NOFILE, &before));
  CHECK(!error && kept && child > 0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  end_another();
  CHECK(!is_shared(pages) && are_filled(pages));
  munmap(pages, kSize);
}

/* A buffer of io_uring is pinned: the kernel goes on with the pages that it had at first. */
static void pinned(void) {
  char* pages = filled_pages();
  struct ibv_mr* region = shared(pages);
  struct io_uring_params parameters = {0};
  int ring = (int)syscall(SYS_io_uring_setup, 2, &parameters);
  struct iovec buffer = {pages, kSize};
  bool pins =
      ring >= 0 && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
  CHECK(!ibv_dereg_mr(region));
  CHECK(are_filled(pages));
  if (pins) {
    CHECK(is_shared(pages));
    CHECK(!syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
  }
  if (ring >= 0) close(ring);
  end_another();
  CHECK(!is_shared(pages) && are_filled(pages));
  munmap(pages, kSize);
}

/* Handlers of before the provider was loaded: they run while it holds its lock. */
static struct ibv_mr* goes; /* in the next fork() */
static char* comes;         /* registered in the parent afterwards */
static struct ibv_mr* come;
static struct ibv_context* closes; /* in the child */

static void prepare(void) {
  if (goes) CHECK(!ibv_dereg_mr(goes));
  goes = NULL;
}
static void in_parent(void) {
  if (comes) come = register_with("1", comes, kSize, kRights);
  comes = NULL;
}
static void in_child(void) {
  if (closes) ibv_close_device(closes);
}
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(prepare, in_parent, in_child);
}

static void fork_handlers(void) {
  char *first = filled_pages(), *second = filled_pages(), *third = filled_pages();
  struct ibv_mr* stays = shared(third);
  goes = shared(first);
  comes = second;
  closes = context;
  pid_t child = fork();
  if (child == 0) _exit(are_filled(first) && are_filled(second) && are_filled(third) ? 0 : 1);
  closes = NULL;
  REQUIRE(child > 0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(!goes && !is_shared(first) && are_filled(first));
  CHECK(come && are_filled(second));
  CHECK(is_shared(third) && are_filled(third));
  if (come) CHECK(!ibv_dereg_mr(come));
  CHECK(!ibv_dereg_mr(stays));
  CHECK(are_filled(second) && are_filled(third));
  munmap(first, kSize);
  munmap(second, kSize);
  munmap(third, kSize);
}

const struct verbs_case kKeptPageCases[] = {
    {"shared pages: without a descriptor they keep their bytes, and go back later",
     no_descriptor_left},
    {"shared pages: those that the kernel has pinned stay until it has not", pinned},
    {"shared pages: fork handlers may register memory and end it", fork_handlers},
    {NULL, NULL}};
