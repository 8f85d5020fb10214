/* Channels of librdmacm.
 *
 * librdmacm opens the kernel's device file, checks that it is a character device (fstat(2)), writes
 * commands whose answers the kernel stores at addresses in them, and waits by poll(2) or in the
 * command that gets an event. A file of a FUSE server cannot be a character device; that of rocefs
 * is /dev/null. So librdmacm's own calls of three functions are redirected to functions here: at
 * the fstat(2) of /dev/null a socket of the engine replaces it, under the same descriptor, which is
 * readable while an event waits; commands go to the engine on another socket, and answers are
 * stored where the command says. All else of the program is untouched, and it may
 * poll, watch and set O_NONBLOCK. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rdma/provider/cancel.h"
#include "rdma/provider/cm_answers.h"
#include "rdma/provider/forks.h"
#include "rdma/provider/rocefs.h"
#include "rdma/uapi/cm.h"

/* Commands of rdma_user_cm.h. */
enum { kCreateId = 0, kGetEvent = 12, kSetOption = 14, kMigrateId = 18 };
struct header {
  uint32_t command;
  uint16_t in, out;
};
enum { kOptionAt = 8, kOptionSizeAt = 28, kOtherFileAt = 20 };
enum { kMaxInVain = 10000 }; /* events in a row that another thread has got */

struct channel {
  uint64_t name;  /* program's socket */
  uint32_t users; /* commands in progress, and the list; the last one frees it; by mutex */
  struct rocefs_connection connection;
  bool closed; /* by the connection's mutex */
  struct channel* next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct channel* channels;      /* open ones; protected by mutex */
static char root[IBV_SYSFS_PATH_MAX]; /* protected by mutex */

static struct channel** find(uint64_t name) {
  struct channel** link = &channels;
  while (*link && (*link)->name != name) link = &(*link)->next;
  return link;
}

/* The descriptor's channel, which stays until release(), though another thread may close it. */
static struct channel* hold(int fd) {
  uint64_t name = rocefs_channel_name(fd);
  if (!name) return NULL;
  pthread_mutex_lock(&mutex);
  struct channel* channel = *find(name);
  if (channel) ++channel->users;
  pthread_mutex_unlock(&mutex);
  return channel;
}

static void release(struct channel* channel) {
  pthread_mutex_lock(&mutex);
  bool last = --channel->users == 0;
  pthread_mutex_unlock(&mutex);
  if (!last) return;
  rocefs_disconnect(&channel->connection);
  free(channel);
}

static bool is_closed(struct channel* channel) {
  pthread_mutex_lock(&channel->connection.mutex);
  bool closed = channel->closed;
  pthread_mutex_unlock(&channel->connection.mutex);
  return closed;
}

/* Opens the engine's end of a new channel and this end; returns an errno. */
static int ask_for_channel(struct channel* channel, int* events) {
  struct rocefs_request request = {.op = ROCEFS_OP_CM_OPEN};
  struct rocefs_answer answer;
  char why[256];
  request.u.hello.magic = ROCEFS_UAPI_MAGIC;
  request.u.hello.version = ROCEFS_UAPI_VERSION;
  rocefs_read_comm(request.u.hello.comm, sizeof request.u.hello.comm);
  int error = rocefs_connect(&channel->connection, root, why, sizeof why);
  if (error == EPROTONOSUPPORT) fprintf(stderr, "rocefs: %s\n", why);
  if (error) return error;
  error = rocefs_exchange(&channel->connection, &request, -1, &answer, events, 1);
  if (!error) error = answer.error;
  if (!error && *events < 0) error = EMFILE;
  if (!error && !rocefs_channel_name(*events)) error = EPROTO; /* not a socket */
  if (!error) return 0;
  if (*events >= 0) close(*events);
  rocefs_disconnect(&channel->connection);
  return error;
}

static void forget(struct channel* channel) {
  pthread_mutex_lock(&mutex);
  struct channel** link = find(channel->name);
  bool listed = *link != NULL; /* not if two threads close it */
  if (listed) *link = channel->next;
  pthread_mutex_unlock(&mutex);
  if (listed) release(channel);
}

/* Replaces the program's descriptor by the socket that is readable while an event waits. */
static int open_channel(int fd) {
  int events = -1;
  struct channel* channel = calloc(1, sizeof *channel);
  if (!channel) return ENOMEM;
  int error = ask_for_channel(channel, &events);
  if (error) {
    free(channel);
    return error;
  }
  channel->name = rocefs_channel_name(events);
  channel->users = 1;
  pthread_mutex_lock(&mutex);
  channel->next = channels;
  channels = channel;
  pthread_mutex_unlock(&mutex);
  if (dup3(events, fd, O_CLOEXEC) < 0) error = errno;
  close(events);
  if (error) forget(channel);
  return error;
}

static int look(int fd, struct stat* status) {
  ROCEFS_UNCANCELLED;
  if (fstat(fd, status)) return -1;
  if (!S_ISCHR(status->st_mode) || status->st_rdev != makedev(1, 3)) return 0;
  int error = open_channel(fd);
  if (!error) return 0;
  errno = error;
  return -1;
}

/* True in a child of fork() of the process that opened the channel. It is still the parent's, and
 * its mutex may be that of a thread which is not here. */
static bool is_foreign(const struct channel* channel) {
  return channel->connection.owner != getpid();
}

/* Ends a channel behind the command in progress. */
static void end_channel(struct channel* channel) {
  struct rocefs_connection* connection = &channel->connection;
  if (is_foreign(channel)) return;
  pthread_mutex_lock(&connection->mutex);
  channel->closed = true;
  shutdown(connection->fd, SHUT_RDWR);
  pthread_mutex_unlock(&connection->mutex);
}

/* Closes a channel, which is known until its descriptor is closed: a thread that comes meanwhile
 * must not take it for another file. */
static int close_channel(int fd) {
  ROCEFS_UNCANCELLED;
  int before = errno; /* close() may follow a failure whose errno is still to be returned */
  struct channel* channel = hold(fd);
  if (channel) end_channel(channel);
  errno = before;
  int result = close(fd);
  int error = errno;
  if (channel) {
    forget(channel);
    release(channel);
  }
  errno = error;
  return result;
}

/* Removes octets whose events have been read or dropped. */
static void take_octets(int fd, uint32_t count) {
  char octet;
  while (count-- > 0 && recv(fd, &octet, 1, MSG_DONTWAIT) > 0) {
  }
}

static uint64_t load(const void* data, size_t at, size_t size) {
  uint64_t value = 0;
  memcpy(&value, (const char*)data + at, size);
  return value;
}

static int send_command(int socket, const void* data, size_t size, int other) {
  struct header header;
  memcpy(&header, data, sizeof header);
  struct rocefs_cm_command said = {.size = (uint32_t)size};
  struct iovec parts[] = {{&said, sizeof said}, {(void*)data, size}, {NULL, 0}};
  if (header.command == kSetOption && size >= kOptionSizeAt + 4) {
    parts[2].iov_base = (void*)(uintptr_t)load(data, kOptionAt, 8);
    parts[2].iov_len = said.option_size = (uint32_t)load(data, kOptionSizeAt, 4);
    if (said.option_size > ROCEFS_CM_MAX_OPTION) return EINVAL;
  }
  if (other >= 0) said.other = rocefs_channel_name(other);
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

/* Checks an answer before it is stored. */
struct reply {
  struct rocefs_cm_answer said;
  uint64_t octets[ROCEFS_CM_MAX_ANSWER / sizeof(uint64_t)];
};
_Static_assert(offsetof(struct reply, octets) == sizeof(struct rocefs_cm_answer), "as sent");

static int receive_reply(int socket, struct reply* reply) {
  struct iovec part = {reply, sizeof *reply};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  ssize_t got;
  do got = recvmsg(socket, &message, 0);
  while (got < 0 && errno == EINTR);
  bool whole = got >= (ssize_t)sizeof reply->said && !(message.msg_flags & MSG_TRUNC) &&
               (size_t)got - sizeof reply->said == reply->said.size;
  /* Octets of events: a command gets at most one event, and each has one octet. */
  return whole && reply->said.take <= 1 && reply->said.take_other <= 1 ? 0 : EIO;
}

static int admit(const void* data, size_t size, struct reply* reply) {
  if (rocefs_admit_cm_answer(data, size, reply->octets, reply->said.size)) return 0;
  fprintf(stderr, "rocefs: the engine's CM told of what cannot be: the command fails\n");
  return EIO;
}

/* Stores the answer at the program's address, as the kernel would. */
static void store(const void* data, size_t size, const struct reply* reply) {
  struct header header;
  memcpy(&header, data, sizeof header);
  size_t at = header.command == kCreateId ? 16 : 8;
  if (reply->said.size > 0 && size >= at + 8)
    memcpy((void*)(uintptr_t)load(data, at, 8), reply->octets, reply->said.size);
}

/* Sends one command and takes its answer; returns an errno. The octet of an event is taken before
 * the next command is sent. */
static int exchange(struct channel* channel, int fd, const void* data, size_t size, int other,
                    struct reply* reply) {
  struct rocefs_connection* connection = &channel->connection;
  pthread_mutex_lock(&connection->mutex);
  int error = channel->closed ? EBADF : connection->broken ? EIO : 0;
  if (!error) error = send_command(connection->fd, data, size, other);
  if (!error) {
    error = receive_reply(connection->fd, reply);
    if (!error && other < 0 && !reply->said.error) error = admit(data, size, reply);
    if (error) connection->broken = 1;
  }
  if (!error) take_octets(fd, reply->said.take);
  if (!error && other >= 0) take_octets(other, reply->said.take_other);
  pthread_mutex_unlock(&connection->mutex);
  return error ? error : reply->said.error;
}

/* Counts the events of a migrated id at its former channel, once the command in progress there has
 * ended. */
static int end_move(const void* data, size_t size, int other, struct reply* reply) {
  struct channel* from = hold(other);
  if (from && !is_foreign(from)) {
    pthread_mutex_lock(&from->connection.mutex);
    pthread_mutex_unlock(&from->connection.mutex);
  }
  if (from) release(from);
  return admit(data, size, reply);
}

static int command(struct channel* channel, int fd, const void* data, size_t size) {
  ROCEFS_UNCANCELLED;
  struct reply reply;
  bool migrates = load(data, 0, 4) == kMigrateId && size >= kOtherFileAt + 4;
  int other = migrates ? (int)load(data, kOtherFileAt, 4) : -1;
  int error = exchange(channel, fd, data, size, other, &reply);
  if (!error && other >= 0) error = end_move(data, size, other, &reply);
  if (!error) store(data, size, &reply);
  return error;
}

static void release_cancelled(void* channel) {
  release(channel);
}

/* Waits as the descriptor's flags say: without limit, or not at all. The engine ends a channel. The
 * thread may be cancelled here, as in a read(2). */
static int await_event(struct channel* channel, int fd) {
  char octet;
  ssize_t got;
  pthread_cleanup_push(release_cancelled, channel);
  got = recv(fd, &octet, 1, MSG_PEEK);
  pthread_cleanup_pop(0);
  return got > 0 ? 0 : got < 0 ? errno : EIO;
}

static int get_event(struct channel* channel, int fd, const void* data, size_t size) {
  for (unsigned in_vain = 0; in_vain < kMaxInVain; ++in_vain) {
    int error = await_event(channel, fd);
    if (error) return error;
    error = command(channel, fd, data, size);
    if (error != EAGAIN) return error;
    sched_yield(); /* taken by another thread */
  }
  return EIO;
}

static ssize_t write_command(int fd, const void* data, size_t size) {
  struct channel* channel = hold(fd);
  if (!channel) return write(fd, data, size);
  if (is_foreign(channel)) { /* as the kernel answers who has not opened the file */
    release(channel);
    errno = EACCES;
    return -1;
  }
  bool whole = size >= sizeof(struct header) && size <= ROCEFS_CM_MAX_COMMAND;
  bool waits = whole && load(data, 0, 4) == kGetEvent;
  int error = !whole  ? EINVAL
              : waits ? get_event(channel, fd, data, size)
                      : command(channel, fd, data, size);
  bool closed = error && is_closed(channel);
  release(channel);
  if (!error) return (ssize_t)size;
  /* A thread that waits while another one closes the channel goes on waiting, as with a file of the
   * kernel; the descriptor may be another file by now. */
  if (waits && closed) pause();
  errno = closed ? (waits ? EINTR : EBADF) : error;
  return -1;
}

void rocefs_serve_cm(const char* at) {
  static const char kLibrary[] = "librdmacm.so";
  rocefs_free_in_child(&mutex);
  rocefs_begin_cm_answers();
  pthread_mutex_lock(&mutex);
  snprintf(root, sizeof root, "%s", at);
  pthread_mutex_unlock(&mutex);
  if (rocefs_hook(kLibrary, "write", (uintptr_t)write_command)) return;
  rocefs_hook(kLibrary, "close", (uintptr_t)close_channel);
  rocefs_hook(kLibrary, "fstat", (uintptr_t)look);
}
