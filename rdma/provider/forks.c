#include "rdma/provider/forks.h"

enum { kMost = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t* listed[kMost] = {&mutex}; /* written by the holder of the mutex */

static void in_child(void) {
  for (int i = 0; i < kMost && listed[i]; ++i) pthread_mutex_init(listed[i], NULL);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, in_child);
}

void rocefs_free_in_child(pthread_mutex_t* wanted) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&mutex);
  int i = 0;
  while (i < kMost && listed[i] && listed[i] != wanted) ++i;
  if (i < kMost) listed[i] = wanted;
  pthread_mutex_unlock(&mutex);
}
