/* Locks in a child of fork(). */
#ifndef ROCEFS_PROVIDER_FORKS_H
#define ROCEFS_PROVIDER_FORKS_H

#include <pthread.h>

/* Lets each child of fork() find the mutex free, though another thread may have held it, which the
 * child does not have. For what is consistent between any two stores. Idempotent. */
void rocefs_free_in_child(pthread_mutex_t* mutex);

#endif
