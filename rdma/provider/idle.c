/* Idle polling: a thread that spins on poll_cq gives its CPU away, because engine and peer need one
 * too.
 *
 * A thread spins if it polls in vain again and again, at most about a microsecond apart, and
 * neither gets nor posts anything meanwhile. After some microseconds its polls wait for a
 * completion of any CQ of the context, but never long: the thread may also watch memory or a clock.
 * A thread that polls now and then, or between other work, never waits.
 *
 * Spinning is a property of the thread, not of a CQ: a thread that polls a busy CQ and an idle one
 * in turn must not wait on the idle one; a thread that spins on the idle one alone should. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rdma/provider/rocefs.h"

enum {
  kPollsPerLook = 32,     /* reading the clock costs as much as a poll */
  kSlowestLookNs = 32000, /* slower polls are no spinning */
  kSpinNs = 5000,
  kWaitNs = 100000,
  kWaitModeratedNs = 400000,
};

static __thread struct {
  const struct rocefs_context* context;
  unsigned polls; /* in vain, since the clock was read */
  uint64_t since; /* first clock reading; 0: none yet */
  uint64_t looked;
} idle;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void rocefs_thread_is_busy(void) {
  idle.polls = 0;
  idle.since = 0;
}

static bool has_spun(const struct rocefs_context* context) {
  if (idle.context != context) { /* polling two devices is no spinning */
    idle.context = context;
    rocefs_thread_is_busy();
  }
  if (++idle.polls < kPollsPerLook) return false;
  idle.polls = 0;
  uint64_t now = now_ns(), before = idle.looked;
  idle.looked = now;
  if (!idle.since || now - before > kSlowestLookNs) {
    idle.since = now;
    return false;
  }
  return now - idle.since >= kSpinNs;
}

static bool is_empty(struct rocefs_cq* cq) {
  pthread_mutex_lock(&cq->lock); /* prevents a resize */
  bool empty = __atomic_load_n(&cq->page->produced, __ATOMIC_ACQUIRE) ==
               __atomic_load_n(&cq->page->consumed, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&cq->lock);
  return empty;
}

bool rocefs_thread_is_idle(struct rocefs_cq* cq) {
  struct rocefs_context* context = rocefs_context_of(cq->verbs.cq.context);
  struct rocefs_context_page* page = context->page;
  bool in_vain = false;
  if (!has_spun(context)) return false;
  /* Counter before the last look at the CQ: a completion after that look changes it. */
  uint32_t seen = __atomic_load_n(&page->completions, __ATOMIC_ACQUIRE);
  __atomic_fetch_add(&page->waiters, 1, __ATOMIC_SEQ_CST);
  bool moderated = __atomic_load_n(&page->moderated, __ATOMIC_RELAXED) != 0;
  struct timespec limit = {.tv_nsec = moderated ? kWaitModeratedNs : kWaitNs};
  if (is_empty(cq))
    in_vain = syscall(SYS_futex, &page->completions, FUTEX_WAIT, seen, &limit, NULL, 0) != 0;
  __atomic_fetch_sub(&page->waiters, 1, __ATOMIC_SEQ_CST);
  if (in_vain) rocefs_check_alive(&context->connection);
  rocefs_thread_is_busy();
  return true;
}
