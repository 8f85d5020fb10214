/* Answers of the engine's to librdmacm. */
#ifndef ROCEFS_PROVIDER_CM_ANSWERS_H
#define ROCEFS_PROVIDER_CM_ANSWERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether that answer to a command which has succeeded can be. The command is as librdmacm writes
 * it. Notes the ids that are made and end, and the events that librdmacm is given: so nobody asks
 * on the same channel meanwhile. The number of events that the end or the move of an id waits for
 * becomes at most those that were given. */
bool rocefs_admit_cm_answer(const void* command, size_t size, void* answer, size_t answer_size);

#endif
