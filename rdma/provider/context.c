#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/provider/descriptors.h"
#include "rdma/provider/rocefs.h"
#include "rdma/provider/slots.h"
#include "rdma/uapi/peer.h"

/* Bytes by which the engine tests that it may access the memory of this process. */
static const uint32_t kProbe = ROCEFS_UAPI_MAGIC;

/* Context as libibverbs knows it. */
static struct verbs_context* library_context(struct rocefs_context* context) {
  return (struct verbs_context*)(void*)((char*)&context->verbs + rocefs_context_shift());
}

bool rocefs_is_foreign(const struct rocefs_context* context) {
  return getpid() != context->connection.owner;
}

int rocefs_request_passing(struct rocefs_context* context, struct rocefs_request* request,
                           int passed, struct rocefs_answer* answer, int* received,
                           unsigned count) {
  ROCEFS_UNCANCELLED;
  if (rocefs_is_foreign(context) || rocefs_is_gone(context)) return EIO;
  int error = rocefs_exchange(&context->connection, request, passed, answer, received, count);
  if (error || !answer->error) return error;
  __verbs_log(library_context(context), VERBS_LOG_WARN, "rocefs: %s: %.*s\n",
              context->verbs.context.device->name, (int)sizeof answer->u.reason, answer->u.reason);
  return answer->error;
}

int rocefs_request(struct rocefs_context* context, struct rocefs_request* request,
                   struct rocefs_answer* answer) {
  struct rocefs_answer ignored;
  return rocefs_request_passing(context, request, -1, answer ? answer : &ignored, NULL, 0);
}

int rocefs_destroy_error(const struct rocefs_context* context, int error) {
  bool overlook = verbs_allow_disassociate_destroy && !rocefs_is_foreign(context);
  if (error == EIO && overlook) return 0;
  if (error) errno = error; /* as a call of the kernel leaves it */
  return error;
}

void* rocefs_map(int fd, size_t size, int protection) {
  ROCEFS_UNCANCELLED;
  if (fd < 0) {
    errno = EMFILE;
    return NULL;
  }
  int error = rocefs_check_memory(fd, size);
  void* memory = error ? MAP_FAILED : mmap(NULL, size, protection, MAP_SHARED, fd, 0);
  if (!error && memory == MAP_FAILED) error = errno;
  if (!error && madvise(memory, size, MADV_DONTFORK)) {
    error = errno;
    munmap(memory, size);
  }
  close(fd);
  errno = error;
  return error ? NULL : memory;
}

void rocefs_read_comm(char* comm, size_t size) {
  int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, comm, size - 1);
  if (fd >= 0) close(fd);
  comm[length > 0 ? length : 0] = 0;
  comm[strcspn(comm, "\n")] = 0;
}

/* Introduces this process to the engine and maps shared memory; returns an errno and a reason. */
static int say_hello(struct rocefs_context* context, int events, char* why, size_t size) {
  struct rocefs_request request = {.op = ROCEFS_OP_HELLO};
  struct rocefs_answer answer;
  int fds[3];
  request.u.hello.magic = ROCEFS_UAPI_MAGIC;
  request.u.hello.version = ROCEFS_UAPI_VERSION;
  snprintf(request.u.hello.device, sizeof request.u.hello.device, "%s",
           context->verbs.context.device->name);
  rocefs_read_comm(request.u.hello.comm, sizeof request.u.hello.comm);
  request.u.hello.probe = (uintptr_t)&kProbe;
  int error = rocefs_exchange(&context->connection, &request, events, &answer, fds, 3);
  if (error) {
    snprintf(why, size, "the engine does not answer");
    return error;
  }
  if (answer.error) {
    snprintf(why, size, "%.*s", (int)sizeof answer.u.reason, answer.u.reason);
    return answer.error;
  }
  context->attr = answer.u.device;
  context->engine = rocefs_map(fds[0], sizeof *context->engine, PROT_READ);
  error = context->engine ? 0 : errno;
  context->page = rocefs_map(fds[1], sizeof *context->page, PROT_READ | PROT_WRITE);
  if (!context->page && !error) error = errno;
  context->doorbell = fds[2];
  if (!error && context->doorbell < 0) error = EMFILE;
  if (!error && !(rocefs_device_can_be(&context->attr) && rocefs_is_eventfd(context->doorbell)))
    error = EPROTO;
  if (error) snprintf(why, size, "cannot map the engine's memory: %s", strerror(error));
  return error;
}

static void unmap(struct rocefs_context* context) {
  if (context->engine) munmap((void*)context->engine, sizeof *context->engine);
  if (context->page) munmap(context->page, sizeof *context->page);
}

/* Opens all parts of a context but its memory; close_engine() undoes it. */
static int open_engine(struct rocefs_context* context, const char* root, char* why, size_t size) {
  int events[2];
  int error = rocefs_connect(&context->connection, root, why, size);
  if (error) return error;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events)) {
    error = errno;
    snprintf(why, size, "socketpair: %s", strerror(error));
  } else {
    int own = context->verbs.context.async_fd = rocefs_raise(events[0]);
    if (own < 0) {
      error = errno;
      snprintf(why, size, "socketpair: %s", strerror(error));
    } else {
      error = say_hello(context, events[1], why, size);
    }
    close(events[1]);
  }
  if (!error && (error = rocefs_add_channels(context)))
    snprintf(why, size, "cannot provide completion channels: %s", strerror(error));
  if (!error) return 0;
  unmap(context);
  if (context->doorbell >= 0) close(context->doorbell);
  rocefs_disconnect(&context->connection);
  return error;
}

void rocefs_free_context(struct ibv_context* ibv) {
  ROCEFS_UNCANCELLED;
  struct rocefs_context* context = rocefs_context_of(ibv);
  rocefs_remove_channels(context);
  rocefs_await_takers();
  rocefs_end_copier(context);
  rocefs_close_page_file(&context->page_file);
  /* Unmaps, except in a child of fork(), which may have other memory at that address. */
  if (!rocefs_is_foreign(context)) unmap(context);
  close(context->doorbell);
  rocefs_disconnect(&context->connection);
  pthread_mutex_destroy(&context->teardown);
  rocefs_free_regions(&context->regions);
  verbs_uninit_context(library_context(context));
  free(context);
}

/* Libibverbs counts acknowledgements itself: nothing is to be done when an event is read. */
void rocefs_async_event(struct ibv_context* context, struct ibv_async_event* event) {
  (void)context;
  (void)event;
}
void rocefs_cq_event(struct ibv_cq* cq) {
  (void)cq;
}

struct verbs_context* rocefs_alloc_context(struct ibv_device* device, int cmd_fd,
                                           void* private_data) {
  ROCEFS_UNCANCELLED;
  const struct rocefs_device* ours = ROCEFS_CONTAINER(device, struct rocefs_device, verbs.device);
  char why[512];
  (void)private_data;
  struct rocefs_context* context = _verbs_init_and_alloc_context(
      device, cmd_fd, sizeof *context,
      (struct verbs_context*)(offsetof(struct rocefs_context, verbs) + rocefs_context_shift()), 0);
  if (!context) return NULL;
  context->doorbell = -1;
  context->page_file.fd = -1;
  int error = open_engine(context, ours->root, why, sizeof why);
  if (error) {
    /* Prints the reason: libibverbs has no words for it, and a program gets only errno. */
    fprintf(stderr, "rocefs: %s: %s\n", device->name, why);
    verbs_uninit_context(library_context(context));
    free(context);
    errno = error;
    return NULL;
  }
  pthread_mutex_init(&context->teardown, NULL);
  rocefs_init_regions(&context->regions);
  context->verbs.context.num_comp_vectors = 1;
  verbs_set_ops(library_context(context), rocefs_slots());
  return library_context(context);
}
