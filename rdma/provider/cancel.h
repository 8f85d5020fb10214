/* Cancellation of threads (pthread_cancel(3)): no verb may be where it ends a thread, as no
 * ioctl(2) is. A thread that ended there would leave locks held and descriptors open. Only reads
 * that wait for an event can be cancelled, with nothing held. */
#ifndef ROCEFS_PROVIDER_CANCEL_H
#define ROCEFS_PROVIDER_CANCEL_H

#include <pthread.h>

static inline int rocefs_forbid_cancel(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}
static inline void rocefs_restore_cancel(const int* before) {
  int ignored;
  pthread_setcancelstate(*before, &ignored);
}

/* Declaration at the head of a block: until its end the thread is not cancelled. */
#define ROCEFS_UNCANCELLED \
  __attribute__((cleanup(rocefs_restore_cancel), unused)) int before_cancel = rocefs_forbid_cancel()

#endif
