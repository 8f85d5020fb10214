/* Events, and their end with the objects that they name.
 *
 * An event names its object by address, which ibv_get_cq_event() and ibv_get_async_event() follow.
 * So libibverbs' own calls of read(2) are redirected to a function here, which lets events of
 * existing objects through and counts them. When an object is destroyed its events must leave the
 * sockets, as they leave the kernel's queues, and those that the program has got must have been
 * acknowledged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/provider/forks.h"
#include "rdma/provider/rocefs.h"

enum {
  kBuckets = 1024,
  kMaxEvents = 1 << 16, /* waiting on a socket, which has no room for more */
};

/* Held while an event is taken off a socket too: an event is on the socket or counted. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rocefs_element* buckets[kBuckets]; /* of existing objects; protected by mutex */

static struct rocefs_element** bucket_of(uint64_t cookie) {
  return &buckets[(cookie >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

void rocefs_expect_events(struct rocefs_element* element, enum rocefs_element_kind kind,
                          const void* object) {
  element->kind = kind;
  element->cookie = (uintptr_t)object;
  pthread_mutex_lock(&mutex);
  struct rocefs_element** bucket = bucket_of(element->cookie);
  element->next = *bucket;
  *bucket = element;
  pthread_mutex_unlock(&mutex);
}

static struct rocefs_element* find(uint64_t cookie, enum rocefs_element_kind kind) {
  struct rocefs_element* element = *bucket_of(cookie);
  while (element && (element->cookie != cookie || element->kind != kind)) element = element->next;
  return element;
}

static bool admit_completion(const uint64_t* cookie) {
  struct rocefs_element* cq = find(*cookie, ROCEFS_CQ);
  if (cq) ++cq->completions;
  return cq;
}

static bool admit_of(uint64_t cookie, enum rocefs_element_kind kind) {
  struct rocefs_element* element = find(cookie, kind);
  if (element) ++element->asynchronous;
  return element;
}

static bool admit(const struct rocefs_async_event* event, const struct rocefs_context* context) {
  switch (event->type) {
    case IBV_EVENT_CQ_ERR:
      return admit_of(event->element, ROCEFS_CQ);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return admit_of(event->element, ROCEFS_QP);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return admit_of(event->element, ROCEFS_SRQ);
    case IBV_EVENT_DEVICE_FATAL:
      return true;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return !context || (event->element >= 1 && event->element <= context->attr.ports);
  }
  return false;
}

/* Replaces an event that names no object: the program reads that the device is lost. */
static void refuse(struct rocefs_context* context, struct rocefs_async_event* event) {
  *event = (struct rocefs_async_event){.type = IBV_EVENT_DEVICE_FATAL};
  if (context) rocefs_distrust(context, "an event of what is not there");
}

/* Makes of the first end of an asynchronous channel, whose engine has died, the event of a lost
 * device; `got` is what recv(2) returned. */
static ssize_t tell_end(struct rocefs_context* context, struct rocefs_async_event* event,
                        ssize_t got, int error) {
  bool ended = got == 0 || (got < 0 && error == ECONNRESET);
  if (ended && !context->fatal) {
    *event = (struct rocefs_async_event){.type = IBV_EVENT_DEVICE_FATAL};
    got = sizeof *event;
  }
  if (got > 0 && event->type == IBV_EVENT_DEVICE_FATAL) context->fatal = true;
  return got;
}

/* Takes the next event if there is one; `name`: that of the file, whose number may be another
 * file's by now. */
static ssize_t take_event(int fd, uint64_t name, void* data, size_t size) {
  ROCEFS_UNCANCELLED;
  bool completion = size == sizeof(uint64_t), known = true;
  ssize_t got = -1;
  int error = EIO; /* of a file that has ended, too */
  pthread_mutex_lock(&mutex);
  if (rocefs_channel_name(fd) == name) {
    struct rocefs_context* context = completion ? NULL : rocefs_context_of_events(fd);
    got = recv(fd, data, size, MSG_DONTWAIT);
    if (got < 0) error = errno;
    if (context) got = tell_end(context, data, got, error);
    if (got == (ssize_t)size) known = completion ? admit_completion(data) : admit(data, context);
    if (!known && !completion) refuse(context, data);
  }
  pthread_mutex_unlock(&mutex);
  if (!known && completion) {
    fprintf(stderr, "rocefs: the engine told of a completion queue that is not there\n");
    shutdown(fd, SHUT_RDWR);
    got = 0;
  }
  if (got > 0) return got;
  errno = got == 0 ? EIO : error;
  return -1;
}

/* Behaves as read(2): waits or not, as the descriptor's flags say. */
static ssize_t read_event(int fd, void* data, size_t size) {
  bool is_event = size == sizeof(uint64_t) || size == sizeof(struct rocefs_async_event);
  uint64_t name = is_event ? rocefs_channel_name(fd) : 0;
  if (!name) return read(fd, data, size);
  for (;;) {
    char octet;
    ssize_t got = take_event(fd, name, data, size);
    if (got >= 0 || errno != EAGAIN) return got;
    if (recv(fd, &octet, 1, MSG_PEEK) < 0) return -1;
  }
}

/* Closes for libibverbs, but not while an event is taken there: the number might be another file's
 * then. */
static int close_file(int fd) {
  if (!rocefs_channel_name(fd)) return close(fd);
  ROCEFS_UNCANCELLED;
  pthread_mutex_lock(&mutex);
  int result = close(fd);
  pthread_mutex_unlock(&mutex);
  return result;
}

int rocefs_watch_events(void) {
  rocefs_free_in_child(&mutex);
  int error = rocefs_hook(NULL, "read", (uintptr_t)read_event);
  if (!error) rocefs_hook(NULL, "close", (uintptr_t)close_file);
  return error;
}

void rocefs_await_takers(void) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}

static void put_back(struct rocefs_context* context, uint64_t channel,
                     const struct rocefs_async_event* event) {
  struct rocefs_request request = {.op = ROCEFS_OP_PUT_BACK_EVENT,
                                   .u.put_back = {.channel = channel, .event = *event}};
  rocefs_request(context, &request, NULL);
}

void rocefs_drop_events(struct rocefs_context* context, int fd, uint64_t channel,
                        const struct rocefs_element* element) {
  ROCEFS_UNCANCELLED;
  const int error = errno; /* a destruction that succeeds leaves errno alone */
  struct rocefs_async_event event = {0};
  size_t kept = 0, room = 0, taken = 0;
  struct rocefs_async_event* others = NULL;
  pthread_mutex_lock(&mutex);
  /* Takes all, in order, and puts the others back: a socket has no random access. */
  while (taken++ < kMaxEvents && recv(fd, &event, sizeof event, MSG_DONTWAIT) > 0) {
    if (event.element == element->cookie) continue;
    if (kept == room) {
      size_t more = room ? 2 * room : 16;
      struct rocefs_async_event* larger = realloc(others, more * sizeof *others);
      if (!larger) { /* later events may stay: with so little memory no program goes on */
        put_back(context, channel, &event);
        break;
      }
      others = larger;
      room = more;
    }
    others[kept++] = event;
  }
  pthread_mutex_unlock(&mutex);
  if (taken > kMaxEvents) rocefs_distrust(context, "events without end");
  for (size_t i = 0; i < kept; ++i) put_back(context, channel, &others[i]);
  free(others);
  errno = error;
}

void rocefs_expect_no_events(struct rocefs_element* element) {
  pthread_mutex_lock(&mutex);
  struct rocefs_element** link = bucket_of(element->cookie);
  while (*link != element) link = &(*link)->next;
  *link = element->next;
  pthread_mutex_unlock(&mutex);
}

void rocefs_await_acknowledged(pthread_mutex_t* acknowledging, pthread_cond_t* cond,
                               const uint32_t* completed, uint32_t expected) {
  pthread_mutex_lock(acknowledging);
  while (*completed != expected) pthread_cond_wait(cond, acknowledging);
  pthread_mutex_unlock(acknowledging);
}
