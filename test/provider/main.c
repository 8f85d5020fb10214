#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/provider/verbs_test.h"

struct ibv_context* context;
struct ibv_pd* pd;
struct ibv_mr* mr;
__attribute__((aligned(4096))) char memory[1 << 20];

static int failed_checks;

void verbs_check(bool holds, const char* file, int line, const char* condition) {
  int error = errno;
  if (!holds && __atomic_fetch_add(&failed_checks, 1, __ATOMIC_RELAXED) < 10)
    printf("%s:%d: %s (errno %d, %s)\n", file, line, condition, error, strerror(error));
  errno = error;
}

void verbs_require(bool holds, const char* file, int line, const char* condition) {
  if (holds) return;
  verbs_check(false, file, line, condition);
  exit(1);
}

/* Runs the cases whose names contain `text`. */
static bool run_cases(const struct verbs_case* cases, const char* text) {
  bool all = true;
  for (; cases->name; ++cases) {
    if (!strstr(cases->name, text)) continue;
    failed_checks = 0;
    cases->run();
    printf("%s %s\n", failed_checks ? "FAILED" : "ok", cases->name);
    all = all && !failed_checks;
  }
  return all;
}

/* Descriptors that were open before the device: all others must be closed by exec(). */
static bool was_open[1024];
static void look_at_descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}
static void check_descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    int flags = fcntl(fd, F_GETFD);
    CHECK(was_open[fd] || flags < 0 || (flags & FD_CLOEXEC));
  }
}

static void open_all(void) {
  look_at_descriptors();
  context = open_device();
  REQUIRE(context);
  check_descriptors();
  pd = ibv_alloc_pd(context);
  REQUIRE(pd);
  /* Registers a region that is not shared, so that the copy thread exists from now on. */
  struct ibv_mr* first = ibv_reg_mr(pd, memory + 1, sizeof memory - 1, 0);
  REQUIRE(first);
  REQUIRE(!ibv_dereg_mr(first));
  /* Registers one that is shared: the context has a descriptor for all of them. */
  first = register_with("1", memory, 4096, 0);
  REQUIRE(first);
  REQUIRE(!ibv_dereg_mr(first));
  mr = ibv_reg_mr(pd, memory, sizeof memory,
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC);
  REQUIRE(mr);
}

static bool run_all(const char* text) {
  static const struct verbs_case* const kTables[] = {
      kRequestCases, kStateCases,      kServiceCases,  kChannelCases,  kSharedReceiveCases,
      kProcessCases, kWindowCases,     kEventCases,    kExtendedCases, kAbsentCases,
      kRuleCases,    kSharedPageCases, kKeptPageCases, kXrcCases,      kDomainCases,
      kGidCases,     kCancelCases};
  bool all = true;
  int before = open_descriptors();
  open_all();
  int opened = open_descriptors();
  for (size_t i = 0; i < sizeof kTables / sizeof kTables[0]; ++i)
    all = run_cases(kTables[i], text) && all;
  failed_checks = 0;
  CHECK(open_descriptors() == opened);
  CHECK(!ibv_dereg_mr(mr));
  CHECK(!ibv_dealloc_pd(pd));
  CHECK(!ibv_close_device(context));
  CHECK(open_descriptors() == before);
  printf("%s a device that is closed leaves no descriptors\n", failed_checks ? "FAILED" : "ok");
  return all && !failed_checks;
}

/* verbs_test [TEXT|leaving|dying|port]: `ok NAME` or `FAILED NAME` for each test (with TEXT in its
 * name); status 0 if all are ok. */
int main(int count, char** arguments) {
  static const struct {
    const char* name;
    const struct verbs_case* cases;
  } kApart[] = {{"leaving", kLeavingCases}, {"dying", kDyingCases}, {"port", kPortCases}};
  const char* which = count > 1 ? arguments[1] : "";
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof kApart / sizeof kApart[0]; ++i) {
    if (strcmp(which, kApart[i].name) != 0) continue;
    open_all();
    return run_cases(kApart[i].cases, "") ? 0 : 1;
  }
  return run_all(which) ? 0 : 1;
}
