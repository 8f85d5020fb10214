#include "rdma/provider/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rdma/provider/cancel.h"
#include "rdma/provider/descriptors.h"
#include "rdma/uapi/peer.h"

enum {
  kMaxDescriptors = 4, /* in one message */
  kMaxErrno = 4095,
  kPatienceSeconds = 30,
};

/* Puts descriptors of a message into `fds`, -1 for one that could not be raised, and closes those
 * beyond `count`. */
static unsigned take_descriptors(struct msghdr* message, int* fds, unsigned count) {
  unsigned taken = 0;
  for (struct cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    unsigned held = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (unsigned i = 0; i < held; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (taken < count)
        fds[taken++] = rocefs_raise(fd);
      else
        close(fd);
    }
  }
  return taken;
}

static int receive(int fd, struct msghdr* message) {
  ssize_t got;
  do got = recvmsg(fd, message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  size_t expected = message->msg_iov->iov_len;
  if ((size_t)got == expected && !(message->msg_flags & MSG_TRUNC)) return 0;
  take_descriptors(message, NULL, 0);
  return EPROTO;
}

/* Reads the engine's greeting: the process that will access this one's memory, or 0 if this
 * namespace does not know it, and the socket to continue with. On failure, `what` says why. */
static int receive_greeting(int fd, pid_t* mover, int* own, char* what, size_t size) {
  struct rocefs_greeting greeting;
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec iov = {&greeting, sizeof greeting};
  struct msghdr message = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  snprintf(what, size, "no greeting of the engine that this library understands");
  int error = receive(fd, &message);
  if (error) return error;
  *mover = 0;
  take_descriptors(&message, own, 1);
  for (struct cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    struct ucred who;
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    memcpy(&who, CMSG_DATA(part), sizeof who);
    *mover = who.pid;
  }
  if (greeting.magic == ROCEFS_UAPI_REFUSAL) {
    snprintf(what, size, "this user has its share of the engine");
    return greeting.version == EMFILE ? EMFILE : EUSERS;
  }
  if (greeting.magic != ROCEFS_UAPI_MAGIC || *own < 0) return EPROTONOSUPPORT;
  if (greeting.version != ROCEFS_UAPI_VERSION) {
    rocefs_part_from(*own, greeting.version, "this provider", what, size);
    return EPROTONOSUPPORT;
  }
  return 0;
}

/* Permits access under Yama, which a process needs that is neither root nor an ancestor; without
 * Yama the call fails, and no permission is needed. */
static int allow_access(pid_t mover) {
  unsigned long tracer = mover ? (unsigned long)mover : PR_SET_PTRACER_ANY;
  return prctl(PR_SET_PTRACER, tracer, 0, 0, 0) && errno != EINVAL ? errno : 0;
}

static int set_patience(int fd) {
  static const struct timeval patience = {.tv_sec = kPatienceSeconds};
  return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
                 setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience)
             ? errno
             : 0;
}

/* Gets a socket of its own, `own`, by a connected one, or says what failed. */
static int introduce(int fd, const char* root, int* own, char* what, size_t size) {
  static const int yes = 1;
  uid_t peer;
  pid_t mover;
  int error = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) ? errno : set_patience(fd);
  snprintf(what, size, "socket");
  if (error) return error;
  if ((error = rocefs_connect_in(fd, root))) {
    snprintf(what, size, "cannot connect to the engine");
  } else if (!rocefs_trusts_peer(fd, &peer)) {
    snprintf(what, size, "user %u serves it, who is neither root nor you", (unsigned)peer);
    error = EPERM;
  } else if ((error = receive_greeting(fd, &mover, own, what, size))) {
    return error;
  } else if ((error = set_patience(*own))) {
    snprintf(what, size, "socket");
  } else if ((error = allow_access(mover))) {
    snprintf(what, size, "cannot let the engine access memory");
  }
  return error;
}

int rocefs_connect(struct rocefs_connection* connection, const char* root, char* why, size_t size) {
  ROCEFS_UNCANCELLED;
  char what[128] = "socket";
  int own = -1;
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  int error = fd < 0 ? errno : introduce(fd, root, &own, what, sizeof what);
  if (fd >= 0) close(fd);
  if (error) {
    snprintf(why, size, "%s%s/uapi: %s: %s", root, ROCEFS_DIRECTORY, what, strerror(error));
    if (own >= 0) close(own);
    return error;
  }
  connection->fd = own;
  connection->owner = getpid();
  connection->broken = 0;
  pthread_mutex_init(&connection->mutex, NULL);
  return 0;
}

static int send_request(int fd, const struct rocefs_request* request, int passed) {
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec iov = {(void*)request, sizeof *request};
  struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
  if (passed >= 0) {
    memset(&control, 0, sizeof control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
  }
  ssize_t sent;
  do sent = sendmsg(fd, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

/* Makes text of the engine safe for a terminal. */
static void make_printable(char* text, size_t size) {
  for (size_t i = 0; i < size && text[i]; ++i)
    if (text[i] < ' ' || text[i] > '~') text[i] = '?';
}

static int receive_answer(int fd, struct rocefs_answer* answer, int* received, unsigned count) {
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  } control;
  struct iovec iov = {answer, sizeof *answer};
  struct msghdr message = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int error = receive(fd, &message);
  if (error) return error;
  unsigned taken = take_descriptors(&message, received, count);
  if (answer->error) {
    while (taken > 0) close(received[--taken]);
    make_printable(answer->u.reason, sizeof answer->u.reason);
    if (answer->error < 0 || answer->error > kMaxErrno) return EPROTO;
  }
  while (taken < count) received[taken++] = -1;
  return 0;
}

/* True if the connection is intact after a request that could not be sent. */
static bool is_harmless(int error) {
  return error == ENOMEM || error == ENOBUFS || error == ETOOMANYREFS;
}

/* True of a request whose answer takes as long as the engine touches the pages of a region. */
static bool takes_long(uint32_t op) {
  return op == ROCEFS_OP_REG_MR || op == ROCEFS_OP_REREG_MR;
}

int rocefs_exchange(struct rocefs_connection* connection, const struct rocefs_request* request,
                    int passed, struct rocefs_answer* answer, int* received, unsigned count) {
  ROCEFS_UNCANCELLED;
  pthread_mutex_lock(&connection->mutex);
  int error = connection->broken ? EIO : send_request(connection->fd, request, passed);
  if (!is_harmless(error)) {
    if (!error) {
      do error = receive_answer(connection->fd, answer, received, count);
      while (error == EAGAIN && takes_long(request->op)); /* an engine that has died is no EAGAIN */
    }
    /* Breaks the connection on a time-out too: the answer could still come, and be taken for that
     * of another request. */
    if (error) {
      __atomic_store_n(&connection->broken, 1, __ATOMIC_RELAXED);
      error = EIO;
    }
  }
  pthread_mutex_unlock(&connection->mutex);
  return error;
}

void rocefs_check_alive(struct rocefs_connection* connection) {
  ROCEFS_UNCANCELLED;
  struct pollfd end = {.fd = connection->fd};
  if (poll(&end, 1, 0) > 0) __atomic_store_n(&connection->broken, 1, __ATOMIC_RELAXED);
}

void rocefs_disconnect(struct rocefs_connection* connection) {
  ROCEFS_UNCANCELLED;
  close(connection->fd);
  pthread_mutex_destroy(&connection->mutex);
}
