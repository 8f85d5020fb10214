/* Checks of the engine's answers to librdmacm. */
#ifndef ROCEFS_PROVIDER_CM_ANSWERS_H
#define ROCEFS_PROVIDER_CM_ANSWERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Call before the first answer is admitted. */
void rocefs_begin_cm_answers(void);

/* True if the answer to a command that has succeeded is possible. `command` is as librdmacm writes
 * it. Notes ids that are made and destroyed, and events that librdmacm gets, so the caller holds
 * the channel. Limits the number of events for which the destruction or migration of an id waits to
 * those that librdmacm got. */
bool rocefs_admit_cm_answer(const void* command, size_t size, void* answer, size_t answer_size);

#endif
