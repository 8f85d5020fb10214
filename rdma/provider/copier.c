/* Copier: the thread that moves this program's memory for the engine (rdma/uapi/copier.h). It
 * starts when a region is large enough, and ends with its context. Without it the engine moves the
 * memory itself. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rdma/provider/descriptors.h"
#include "rdma/provider/rocefs.h"
#include "rdma/uapi/copier.h"

enum {
  kYields = 100, /* after a copy, before sleeping: more will come soon */
  kStack = 64 * 1024,
  kBytes = sizeof(struct rocefs_copier_page) + ROCEFS_COPIER_SLOTS * ROCEFS_COPIER_SLOT,
};

struct rocefs_copier {
  struct rocefs_context* context;
  pthread_t thread;
  int fd; /* memfd, accessed by read and write: inaccessible memory is an error then */
  struct rocefs_copier_page* page;
  uint32_t leaves; /* not 0: the thread ends */
};

static bool move(const struct rocefs_copier* copier, uint32_t slot,
                 const struct rocefs_copy* copy) {
  off_t there = (off_t)sizeof *copier->page + (off_t)slot * ROCEFS_COPIER_SLOT;
  char* here = (char*)__atomic_load_n(&copy->address, __ATOMIC_RELAXED);
  bool writes = copy->writes;
  size_t left = __atomic_load_n(&copy->length, __ATOMIC_RELAXED);
  if (left > ROCEFS_COPIER_SLOT) return false;
  if (!rocefs_is_registered(&copier->context->regions, (uintptr_t)here, left)) return false;
  while (left > 0) {
    ssize_t moved =
        writes ? pread(copier->fd, here, left, there) : pwrite(copier->fd, here, left, there);
    if (moved <= 0) return false;
    here += moved;
    there += moved;
    left -= (size_t)moved;
  }
  return true;
}

/* Does one copy, or frees one; false if there was none. */
static bool serve(const struct rocefs_copier* copier, uint32_t slot) {
  struct rocefs_copy* copy = &copier->page->copies[slot];
  uint32_t state = __atomic_load_n(&copy->state, __ATOMIC_ACQUIRE);
  if (state == ROCEFS_COPY_POSTED &&
      __atomic_compare_exchange_n(&copy->state, &state, ROCEFS_COPY_TAKEN, false, __ATOMIC_ACQUIRE,
                                  __ATOMIC_ACQUIRE)) {
    state = move(copier, slot, copy) ? ROCEFS_COPY_DONE : ROCEFS_COPY_FAILED;
    __atomic_store_n(&copy->state, state, __ATOMIC_RELEASE);
    rocefs_wake_engine(copier->context);
    return true;
  }
  if (state != ROCEFS_COPY_CANCELLED) return false;
  __atomic_store_n(&copy->state, ROCEFS_COPY_FREE, __ATOMIC_RELEASE);
  return true;
}

static void* run(void* argument) {
  const struct rocefs_copier* copier = argument;
  struct rocefs_copier_page* page = copier->page;
  prctl(PR_SET_NAME, "rocefs-copier");
  int yields = 0;
  for (uint32_t slot = 0;;) {
    uint32_t posted = __atomic_load_n(&page->posted, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&copier->leaves, __ATOMIC_SEQ_CST)) return NULL;
    if (serve(copier, slot)) {
      slot = (slot + 1) % ROCEFS_COPIER_SLOTS;
      yields = kYields;
    } else if (yields > 0) {
      --yields;
      sched_yield();
    } else {
      __atomic_store_n(&page->bored, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, &page->posted, FUTEX_WAIT, posted, NULL, NULL, 0);
      __atomic_store_n(&page->bored, 0, __ATOMIC_SEQ_CST);
    }
  }
}

static bool start(struct rocefs_copier* copier) {
  pthread_attr_t attributes;
  sigset_t all, before;
  if (pthread_attr_init(&attributes)) return false;
  pthread_attr_setstacksize(&attributes, kStack);
  sigfillset(&all); /* signal handlers of the program are for its own threads */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = !pthread_create(&copier->thread, &attributes, run, copier);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

static void free_copier(struct rocefs_copier* copier) {
  munmap(copier->page, kBytes);
  close(copier->fd);
  free(copier);
}

static struct rocefs_copier* make_copier(struct rocefs_context* context) {
  struct rocefs_request request = {.op = ROCEFS_OP_CREATE_COPIER};
  struct rocefs_answer answer;
  struct rocefs_copier* copier = calloc(1, sizeof *copier);
  int fd = -1;
  if (!copier || rocefs_request_passing(context, &request, -1, &answer, &fd, 1) || fd < 0 ||
      (copier->fd = rocefs_duplicate(fd)) < 0) {
    free(copier);
    if (fd >= 0) close(fd);
    return NULL;
  }
  copier->page = rocefs_map(fd, kBytes, PROT_READ | PROT_WRITE);
  if (!copier->page) {
    close(copier->fd);
    free(copier);
    return NULL;
  }
  copier->context = context;
  if (start(copier)) return copier;
  free_copier(copier);
  return NULL;
}

void rocefs_want_copier(struct rocefs_context* context, size_t length) {
  if (length < ROCEFS_COPIER_LEAST) return;
  if (__atomic_exchange_n(&context->copier_wanted, 1, __ATOMIC_RELAXED)) return;
  struct rocefs_copier* copier = make_copier(context);
  if (copier) rocefs_copier_came();
  __atomic_store_n(&context->copier, copier, __ATOMIC_RELEASE);
}

void rocefs_end_copier(struct rocefs_context* context) {
  struct rocefs_copier* copier = __atomic_load_n(&context->copier, __ATOMIC_ACQUIRE);
  if (!copier) return;
  if (rocefs_is_foreign(context)) { /* thread and memory are the parent's */
    close(copier->fd);
    free(copier);
    return;
  }
  /* The thread counts as one of the program's from now on. */
  rocefs_copier_goes();
  __atomic_store_n(&copier->leaves, 1, __ATOMIC_SEQ_CST);
  struct timespec until;
  do { /* repeats: the engine may have reset the word on which the thread waits */
    __atomic_fetch_add(&copier->page->posted, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &copier->page->posted, FUTEX_WAKE, 1, NULL, NULL, 0);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
  } while (pthread_clockjoin_np(copier->thread, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
  free_copier(copier);
}
