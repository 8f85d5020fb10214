/* Regions with pages that the engine shares (ROCEFS_SHARE_REGIONS=1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* True if the byte is in a page of the engine. */
static bool is_shared(const void* address) {
  FILE* file = fopen("/proc/self/maps", "r");
  REQUIRE(file);
  char line[512];
  bool shared = false;
  unsigned long start, end;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%lx-%lx", &start, &end) == 2 && (uintptr_t)address >= start &&
        (uintptr_t)address < end)
      shared = strstr(line, "memfd:rocefs-region");
  }
  fclose(file);
  return shared;
}

static struct ibv_mr* try_to_register(void* address, size_t length, bool wanted, int rights) {
  const char* before = getenv("ROCEFS_SHARE_REGIONS");
  char* kept = before ? strdup(before) : NULL;
  setenv("ROCEFS_SHARE_REGIONS", wanted ? "1" : "0", 1);
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
  CHECK(!ibv_dereg_mr(odd) && !ibv_dereg_mr(short_one));
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

const struct verbs_case kSharedPageCases[] = {
    {"shared pages keep their bytes, and are private again afterwards", keep_bytes},
    {"shared pages: what is not the program's own whole pages is left alone", left_alone},
    {"shared pages: a region that moves away gives them back", moved_away},
    {"shared pages: messages are what they were when they were sent", bytes_cross},
    {NULL, NULL}};
