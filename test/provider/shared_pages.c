/* Regions with pages that the engine shares. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/uapi/uapi.h"
#include "test/provider/verbs_test.h"

enum { kLength = 65536, kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static char* new_pages(void) {
  char* pages = mmap(NULL, kLength, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  for (int i = 0; i < kLength; ++i) pages[i] = (char)(i * 7 + i / 4096);
  return pages;
}
static bool same_bytes(const char* pages) {
  for (int i = 0; i < kLength; ++i)
    if (pages[i] != (char)(i * 7 + i / 4096)) return false;
  return true;
}

bool is_shared(const void* address) {
  FILE* file = fopen("/proc/self/maps", "r");
  REQUIRE(file);
  char line[512];
  bool shared = false;
  unsigned long start, end;
  char rights[5];
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && (uintptr_t)address >= start &&
        (uintptr_t)address < end)
      shared = rights[3] == 's' && strstr(line, "memfd:rocefs-region");
  }
  fclose(file);
  return shared;
}

struct ibv_mr* register_with(const char* wanted, void* address, size_t length, int rights) {
  const char* before = getenv("ROCEFS_SHARE_REGIONS");
  char* kept = before ? strdup(before) : NULL;
  if (wanted)
    setenv("ROCEFS_SHARE_REGIONS", wanted, 1);
  else
    unsetenv("ROCEFS_SHARE_REGIONS");
  struct ibv_mr* region = ibv_reg_mr(pd, address, length, rights);
  int error = errno;
  if (kept)
    setenv("ROCEFS_SHARE_REGIONS", kept, 1);
  else
    unsetenv("ROCEFS_SHARE_REGIONS");
  free(kept);
  errno = error;
  return region;
}

static struct ibv_mr* try_to_register(void* address, size_t length, bool wanted, int rights) {
  return register_with(wanted ? "1" : "0", address, length, rights);
}

static struct ibv_mr* registered(void* address, size_t length, bool wanted) {
  struct ibv_mr* region = try_to_register(address, length, wanted, kRights);
  REQUIRE(region);
  return region;
}

static void keep_bytes(void) {
  char* pages = new_pages();
  struct ibv_mr* region = registered(pages, kLength, false);
  CHECK(!is_shared(pages));
  CHECK(!ibv_dereg_mr(region));
  for (int i = 0; i < 2; ++i) {
    region = registered(pages, kLength, true);
    CHECK(is_shared(pages) && is_shared(pages + kLength - 1) && same_bytes(pages));
    CHECK(!ibv_dereg_mr(region));
    CHECK(!is_shared(pages) && !is_shared(pages + kLength - 1) && same_bytes(pages));
  }
  munmap(pages, kLength);
}

static void left_alone(void) {
  char* pages = new_pages();
  struct ibv_mr* odd = registered(pages + 8, 4096, true);
  struct ibv_mr* short_one = registered(pages + 4096, 4095, true);
  CHECK(!is_shared(pages) && !is_shared(pages + 4096));
  /* The engine may be writing to a region that overlaps. */
  struct ibv_mr* around = registered(pages, kLength, true);
  CHECK(!is_shared(pages) && !is_shared(pages + 8192));
  CHECK(!ibv_dereg_mr(around) && !ibv_dereg_mr(odd) && !ibv_dereg_mr(short_one));
  struct ibv_mr* first = registered(pages, kLength, true);
  struct ibv_mr* again = registered(pages, kLength, true);
  CHECK(is_shared(pages));
  CHECK(!ibv_dereg_mr(again));
  CHECK(is_shared(pages) && same_bytes(pages));
  /* Pages that the program has mapped in their place stay. */
  REQUIRE(mmap(pages, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == pages);
  strcpy(pages, "other");
  CHECK(!ibv_dereg_mr(first));
  CHECK(!strcmp(pages, "other"));
  /* Read-only pages. */
  munmap(pages, kLength);
  pages = new_pages();
  mprotect(pages, kLength, PROT_READ);
  CHECK(!try_to_register(pages, 4096, true, kRights) && errno == EFAULT);
  struct ibv_mr* read_only = try_to_register(pages, 4096, true, 0);
  REQUIRE(read_only && !is_shared(pages));
  CHECK(!ibv_dereg_mr(read_only));
  munmap(pages, kLength);
}

static void moved_away(void) {
  char *pages = new_pages(), *others = new_pages();
  struct ibv_mr* region = registered(pages, kLength, true);
  CHECK(!ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, others, 64, 0));
  CHECK(!is_shared(pages) && same_bytes(pages) && !is_shared(others));
  CHECK(!ibv_dereg_mr(region));
  munmap(pages, kLength);
  munmap(others, kLength);
}

/* One message from shared pages to shared pages. The program changes its bytes right after
 * completion, which is before arrival for services without acknowledgements. */
static void send_one(struct pair* pair, struct ibv_mr* region, char content) {
  struct ibv_sge from = {(uintptr_t)region->addr, 2048, region->lkey};
  struct ibv_sge to = {(uintptr_t)region->addr + 4096, 4096, region->lkey};
  struct ibv_send_wr *bad_send, send = {.wr_id = 1,
                                        .sg_list = &from,
                                        .num_sge = 1,
                                        .opcode = IBV_WR_SEND,
                                        .send_flags = IBV_SEND_SIGNALED};
  struct ibv_recv_wr *bad_receive, receive = {.wr_id = 2, .sg_list = &to, .num_sge = 1};
  char* pages = region->addr;
  memset(pages, content, 2048);
  REQUIRE(!ibv_post_recv(pair->b, &receive, &bad_receive));
  REQUIRE(!ibv_post_send(pair->a, &send, &bad_send));
  expect_completion(pair->sends, 1);
  memset(pages, 0, 2048);
  expect_completion(pair->receives, 2);
  for (int i = 0; i < 2048; ++i) REQUIRE(pages[4096 + i] == content);
}

static void bytes_cross(void) {
  char* pages = new_pages();
  struct ibv_mr* region = registered(pages, kLength, true);
  for (int i = 0; i < 2; ++i) {
    struct pair pair = make_pair(i ? IBV_QPT_UC : IBV_QPT_RC);
    connect_pair(&pair);
    for (int content = 1; content < 100; ++content) send_one(&pair, region, (char)content);
    destroy_pair(&pair);
  }
  CHECK(!ibv_dereg_mr(region));
  munmap(pages, kLength);
}

/* ---- When regions are shared without being asked for ---- */

static void* wait_for_end(void* end) {
  pthread_mutex_lock(end);
  pthread_mutex_unlock(end);
  return NULL;
}

static void shared_when_alone(void) {
  char* pages = new_pages();
  struct ibv_mr* region = register_with(NULL, pages, kLength, kRights);
  REQUIRE(region);
  CHECK(is_shared(pages) && same_bytes(pages));
  CHECK(!ibv_dereg_mr(region));
  pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&end);
  pthread_t thread;
  REQUIRE(!pthread_create(&thread, NULL, wait_for_end, &end));
  region = register_with(NULL, pages, kLength, kRights);
  REQUIRE(region);
  CHECK(!is_shared(pages));
  CHECK(!ibv_dereg_mr(region));
  pthread_mutex_unlock(&end);
  pthread_join(thread, NULL);
  REQUIRE(!mlock(pages, 4096));
  region = register_with(NULL, pages, kLength, kRights);
  REQUIRE(region);
  CHECK(!is_shared(pages));
  CHECK(!ibv_dereg_mr(region));
  munmap(pages, kLength);
}

/* ---- What a program sees of it ---- */

struct counting {
  volatile uint64_t* counters; /* one in each page */
  uint64_t counts[kLength / 4096];
  int ends; /* atomic */
};

static void* count(void* argument) {
  struct counting* what = argument;
  while (!__atomic_load_n(&what->ends, __ATOMIC_ACQUIRE)) {
    for (int i = 0; i < kLength / 4096; ++i) {
      what->counters[i * 512] = what->counters[i * 512] + 1;
      ++what->counts[i];
    }
  }
  return NULL;
}

/* Another thread writes to the pages all the time while they are given back. */
static void no_write_is_lost(void) {
  for (int turn = 0; turn < 50; ++turn) {
    char* pages = new_pages();
    memset(pages, 0, kLength);
    struct ibv_mr* region = registered(pages, kLength, true);
    struct counting what = {.counters = (uint64_t*)(void*)pages};
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, count, &what));
    while (what.counters[(kLength / 4096 - 1) * 512] == 0) continue;
    CHECK(!ibv_dereg_mr(region));
    CHECK(!is_shared(pages));
    __atomic_store_n(&what.ends, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    for (int i = 0; i < kLength / 4096; ++i) REQUIRE(what.counters[i * 512] == what.counts[i]);
    munmap(pages, kLength);
  }
}

/* Another thread, from start_thread() to end_thread(): pages are given back in the other way. */
static pthread_mutex_t other_end = PTHREAD_MUTEX_INITIALIZER;
static pthread_t start_thread(void) {
  pthread_t thread;
  pthread_mutex_lock(&other_end);
  REQUIRE(!pthread_create(&thread, NULL, wait_for_end, &other_end));
  return thread;
}
static void end_thread(pthread_t thread) {
  pthread_mutex_unlock(&other_end);
  pthread_join(thread, NULL);
}

/* Deregisters a region, alone or beside another thread. */
static void deregister(struct ibv_mr* region, bool beside) {
  pthread_t thread = beside ? start_thread() : 0;
  CHECK(!ibv_dereg_mr(region));
  if (beside) end_thread(thread);
}

static void discarded_pages_are_zero(void) {
  for (int beside = 0; beside < 2; ++beside) {
    char* pages = new_pages();
    struct ibv_mr* region = registered(pages, kLength, true);
    deregister(region, beside);
    CHECK(!is_shared(pages) && same_bytes(pages));
    REQUIRE(!madvise(pages + 4096, 8192, MADV_DONTNEED));
    for (int i = 0; i < 8192; ++i) REQUIRE(pages[4096 + i] == 0);
    pages[4096] = 1;
    CHECK(pages[4096] == 1 && pages[8192] == 0);
    munmap(pages, kLength);
  }
}

static long locked_kib(void) {
  FILE* file = fopen("/proc/self/status", "r");
  REQUIRE(file);
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, file)) sscanf(line, "VmLck: %ld", &kib);
  fclose(file);
  return kib;
}

static void locks_and_rights_stay(void) {
  for (int beside = 0; beside < 2; ++beside) {
    char* pages = new_pages();
    struct ibv_mr* region = registered(pages, kLength, true);
    REQUIRE(!mlock(pages, kLength) && !mprotect(pages + 4096, 4096, PROT_READ));
    REQUIRE(!mprotect(pages + 8192, 4096, PROT_NONE));
    long before = locked_kib();
    deregister(region, beside);
    CHECK(locked_kib() == before);
    int to_self[2];
    REQUIRE(!pipe(to_self));
    CHECK(write(to_self[1], "x", 1) == 1 && read(to_self[0], pages + 4096, 1) < 0 &&
          errno == EFAULT);
    CHECK(write(to_self[1], pages + 8192, 1) < 0 && errno == EFAULT);
    close(to_self[0]);
    close(to_self[1]);
    REQUIRE(!mprotect(pages, kLength, PROT_READ | PROT_WRITE));
    CHECK(same_bytes(pages));
    munmap(pages, kLength);
  }
}

/* Octets of the context's memfd that take memory. */
static long long memory_of_engine(void) {
  long long octets = 0;
  char path[64], name[64];
  for (int fd = 0; fd < 256; ++fd) {
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) continue;
    name[length] = 0;
    if (strstr(name, "memfd:rocefs-region") && !fstat(fd, &status))
      octets += status.st_blocks * 512LL;
  }
  return octets;
}

/* Memory is given back wherever the program has moved the pages, and if it has unmapped them. */
static void moved_or_unmapped(void) {
  long long before = memory_of_engine();
  for (int beside = 0; beside < 2; ++beside) {
    char* pages = new_pages();
    struct ibv_mr* region = registered(pages, kLength, true);
    CHECK(memory_of_engine() == before + kLength);
    munmap(pages, kLength);
    deregister(region, beside);
    CHECK(memory_of_engine() == before);
    pages = new_pages();
    region = registered(pages, kLength, true);
    struct ibv_mr* next = registered(new_pages(), kLength, true);
    char* grown = mremap(pages, kLength, 2 * kLength, MREMAP_MAYMOVE);
    REQUIRE(grown != MAP_FAILED);
    grown[kLength] = 'g'; /* not in the next region */
    CHECK(is_shared(grown) && same_bytes(grown) && same_bytes(next->addr));
    deregister(region, beside);
    CHECK(!is_shared(grown) && same_bytes(grown) && grown[kLength] == 'g');
    munmap(grown, 2 * kLength);
    void* others = next->addr;
    deregister(next, beside);
    CHECK(memory_of_engine() == before);
    munmap(others, kLength);
  }
}

/* WRITEs octets of `memory`. */
static void write_to(struct ibv_qp* qp, size_t at, uint32_t length, const void* to, uint32_t rkey,
                     uint64_t wr_id) {
  struct ibv_sge from = {(uintptr_t)memory + at, length, mr->lkey};
  struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                 .sg_list = &from,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = (uintptr_t)to;
  wr.wr.rdma.rkey = rkey;
  REQUIRE(!ibv_post_send(qp, &wr, &bad));
}

enum { kWords = 4096 / 8 };

static void fill_words(uint64_t word) {
  for (int i = 0; i <= kWords; ++i) memcpy(memory + i * 8, &word, sizeof word);
}

/* A WRITE into memory that the engine moves, then one into shared pages that announces it. */
static void writes_stay_in_order(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  char *pages = new_pages(), *moved = malloc(8192);
  struct ibv_mr* flags = registered(pages, kLength, true);
  struct ibv_mr* data = registered(moved + 8, 4096, false);
  CHECK(is_shared(pages) && !is_shared(moved + 8));
  volatile uint64_t* flag = (volatile uint64_t*)(void*)pages;
  for (uint64_t turn = 1; turn <= 300; ++turn) {
    fill_words(turn);
    write_to(pair.a, 0, 4096, data->addr, data->rkey, 2 * turn);
    write_to(pair.a, 4096, 8, pages, flags->rkey, 2 * turn + 1);
    while (*flag != turn) continue;
    REQUIRE(moved[8] == (char)turn && moved[4096] == (char)turn);
    expect_completion(pair.sends, 2 * turn);
    expect_completion(pair.sends, 2 * turn + 1);
  }
  destroy_pair(&pair);
  CHECK(!ibv_dereg_mr(data) && !ibv_dereg_mr(flags));
  free(moved);
  munmap(pages, kLength);
}

/* A program that polls the last octets of a message finds the others when it sees them. */
static void last_octets_come_last(void) {
  struct pair pair = make_pair(IBV_QPT_RC);
  connect_pair(&pair);
  char* pages = new_pages();
  struct ibv_mr* region = registered(pages, kLength, true);
  volatile uint64_t* words = (volatile uint64_t*)(void*)pages;
  for (uint64_t turn = 1; turn <= 1000; ++turn) {
    fill_words(turn);
    write_to(pair.a, 0, 4096, pages, region->rkey, turn);
    while (words[kWords - 1] != turn) continue;
    REQUIRE(words[0] == turn && words[8] == turn && words[kWords - 2] == turn);
    expect_completion(pair.sends, turn);
  }
  destroy_pair(&pair);
  CHECK(!ibv_dereg_mr(region));
  munmap(pages, kLength);
}

/* A child has the bytes of the moment of fork(), and each process writes to its own. */
static void child_has_its_own(void) {
  char* pages = new_pages();
  struct ibv_mr* region = registered(pages, kLength, true);
  REQUIRE(!mprotect(pages + 8192, 4096, PROT_READ));
  int to_child[2], to_parent[2];
  REQUIRE(!pipe(to_child) && !pipe(to_parent));
  pid_t child = fork();
  REQUIRE(child >= 0);
  char byte = 0;
  if (child == 0) {
    pages[0] = 'c';
    if (write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1) _exit(1);
    bool well = pages[0] == 'c' && !is_shared(pages) && !is_shared(pages + kLength - 1);
    pages[0] = 0;
    well &= same_bytes(pages);
    _exit(well ? 0 : 2);
  }
  char first = pages[0];
  REQUIRE(read(to_parent[0], &byte, 1) == 1);
  CHECK(pages[0] == first && is_shared(pages));
  pages[4096] = 'p';
  pages[kLength - 1] = 'p';
  REQUIRE(write(to_child[1], &byte, 1) == 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(pages[4096] == 'p' && pages[kLength - 1] == 'p');
  CHECK(!ibv_dereg_mr(region));
  CHECK(!is_shared(pages) && pages[4096] == 'p');
  munmap(pages, kLength);
  for (int i = 0; i < 2; ++i) {
    close(to_child[i]);
    close(to_parent[i]);
  }
}

/* A region of which the program has unmapped or replaced parts: the others are given back. */
static void rest_is_given_back(void) {
  char* pages = new_pages();
  struct ibv_mr* region = registered(pages, kLength, true);
  REQUIRE(mmap(pages + 8192, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == pages + 8192);
  REQUIRE(!munmap(pages + 16384, 4096));
  CHECK(is_shared(pages) && is_shared(pages + 20480));
  CHECK(!ibv_dereg_mr(region));
  CHECK(!is_shared(pages) && !is_shared(pages + 20480) && !is_shared(pages + kLength - 1));
  CHECK(pages[1] == 7 && pages[20480] == (char)(20480 * 7 + 5) && pages[8192] == 0);
  munmap(pages, kLength);
}

enum { kMany = 200 };

/* Regions beyond the limit are ordinary ones. */
static void many(void) {
  enum { kPage = 4096 };
  char* pages =
      mmap(NULL, 2 * kMany * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  struct ibv_mr* regions[kMany];
  int shared = 0;
  for (int i = 0; i < kMany; ++i) {
    pages[i * 2 * kPage] = (char)i;
    regions[i] = registered(pages + i * 2 * kPage, kPage, true);
    shared += is_shared(pages + i * 2 * kPage);
  }
  CHECK(shared == ROCEFS_MAX_SHARED - (is_shared(mr->addr) ? 1 : 0));
  for (int i = 0; i < kMany; ++i) {
    CHECK(!ibv_dereg_mr(regions[i]));
    REQUIRE(pages[i * 2 * kPage] == (char)i);
  }
  CHECK(!is_shared(pages));
  struct ibv_mr* again = registered(pages, kPage, true);
  CHECK(is_shared(pages));
  CHECK(!ibv_dereg_mr(again));
  munmap(pages, 2 * kMany * kPage);
}

const struct verbs_case kSharedPageCases[] = {
    {"pages are shared if no other thread can write to them", shared_when_alone},
    {"shared pages: no write is lost when they are given back", no_write_is_lost},
    {"shared pages: discarded afterwards they are zero", discarded_pages_are_zero},
    {"shared pages: locks and rights stay", locks_and_rights_stay},
    {"shared pages: moved, grown or unmapped ones are given back", moved_or_unmapped},
    {"shared pages: WRITEs into them stay behind earlier ones", writes_stay_in_order},
    {"shared pages: the last octets of a message come last", last_octets_come_last},
    {"shared pages: a child of fork() has its own", child_has_its_own},
    {"shared pages: what the program has not replaced is given back", rest_is_given_back},
    {"shared pages: beyond the limit regions are ordinary", many},
    {"shared pages keep their bytes, and are private again afterwards", keep_bytes},
    {"shared pages: what is not the program's own whole pages is left alone", left_alone},
    {"shared pages: a region that moves away gives them back", moved_away},
    {"shared pages: messages are what they were when they were sent", bytes_cross},
    {NULL, NULL}};
