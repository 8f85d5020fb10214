/* Completion channels.
 *
 * ibv_create_comp_channel() is no verb of a provider: libibverbs writes a command to the kernel's
 * device file, and takes the number of a descriptor from the address in the command, where the
 * kernel stores it. The device file of rocefs is /dev/null, which accepts the command and stores
 * nothing. So libibverbs' own calls of write(2) are redirected to a function here, which answers
 * that one command on files of rocefs and passes on all else.
 *
 * The alternative is a device file that the daemon serves: its write handler would have to store,
 * in the program's memory, the number of a descriptor that the provider has made before, because
 * the daemon cannot make one there. Redirection needs neither, and also works where the daemon may
 * not write to the program from a file handler.
 *
 * A channel is a pair of sockets. Libibverbs reads and closes the program's end; the engine has the
 * other, and sees when the program's end is closed. The provider keeps no state: a CQ names its
 * channel by the cookie of the program's end, which the kernel gives to no other socket. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/provider/forks.h"
#include "rdma/provider/rocefs.h"

enum { kCreateCompChannel = 17 }; /* IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL */

/* Command in <rdma/ib_user_verbs.h>. */
struct command {
  uint32_t command;
  uint16_t in_words, out_words;
  uint64_t response; /* address of an int */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rocefs_context* contexts; /* protected by mutex */

struct rocefs_context* rocefs_context_of_file(int cmd_fd) {
  pthread_mutex_lock(&mutex);
  struct rocefs_context* context = contexts;
  while (context && context->verbs.context.cmd_fd != cmd_fd) context = context->next;
  pthread_mutex_unlock(&mutex);
  return context;
}

struct rocefs_context* rocefs_context_of_events(int fd) {
  pthread_mutex_lock(&mutex);
  struct rocefs_context* context = contexts;
  while (context && context->verbs.context.async_fd != fd) context = context->next;
  pthread_mutex_unlock(&mutex);
  return context;
}

uint64_t rocefs_channel_name(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) ? 0 : cookie;
}

static int create_channel(struct rocefs_context* context, int* fd) {
  struct rocefs_request request = {.op = ROCEFS_OP_CREATE_CHANNEL};
  struct rocefs_answer answer;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return errno;
  request.u.channel = rocefs_channel_name(ends[0]);
  int error = rocefs_request_passing(context, &request, ends[1], &answer, NULL, 0);
  close(ends[1]);
  if (error)
    close(ends[0]);
  else
    *fd = ends[0];
  return error;
}

static ssize_t write_command(int fd, const void* data, size_t size) {
  ROCEFS_UNCANCELLED;
  struct command command;
  if (size < sizeof command) return write(fd, data, size);
  memcpy(&command, data, sizeof command);
  if (command.command != kCreateCompChannel) return write(fd, data, size);
  struct rocefs_context* context = rocefs_context_of_file(fd);
  if (!context) return write(fd, data, size);
  int error = create_channel(context, (int*)(uintptr_t)command.response);
  if (!error) return (ssize_t)size;
  errno = error;
  return -1;
}

int rocefs_add_channels(struct rocefs_context* context) {
  rocefs_free_in_child(&mutex);
  int error = rocefs_hook(NULL, "write", (uintptr_t)write_command);
  if (!error) error = rocefs_watch_events();
  if (error) return error;
  rocefs_answer_gid_queries();
  pthread_mutex_lock(&mutex);
  context->next = contexts;
  contexts = context;
  pthread_mutex_unlock(&mutex);
  return 0;
}

void rocefs_remove_channels(struct rocefs_context* context) {
  pthread_mutex_lock(&mutex);
  struct rocefs_context** link = &contexts;
  while (*link && *link != context) link = &(*link)->next;
  if (*link) *link = context->next;
  pthread_mutex_unlock(&mutex);
}
