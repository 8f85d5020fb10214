/* An engine that lies. Preloaded between the provider and the true engine: passes their messages
 * on, with the one lie that LIE names. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rdma/uapi/cm.h"
#include "rdma/uapi/copier.h"
#include "rdma/uapi/registers.h"
#include "rdma/uapi/uapi.h"
#include "test/lies/liar.h"

enum { kHuge = 0x7fffffff, kMaxFds = 16 };

/* The latest request, and the engine's end of an event socket if it was passed with it. */
static struct rocefs_request asked;
static int passed = -1;

/* An answer to the provider. */
struct answer {
  struct rocefs_answer said;
  ssize_t size; /* size for the provider; -1: no answer */
  int fds[kMaxFds];
  unsigned count;
};

static void put(struct answer* answer, unsigned index, int fd) {
  if (index < answer->count) close(answer->fds[index]);
  if (index >= answer->count) answer->count = index + 1;
  answer->fds[index] = fd;
}

static int memory(size_t size, int seals) {
  int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals)) abort();
  return fd;
}

static void* look_into(int fd, size_t size) {
  void* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) abort();
  return at;
}

/* ---- Lies: changes of an answer ---- */

static void cut_short(struct answer* answer) {
  answer->size = 10;
}
static void end(struct answer* answer) {
  answer->size = 0;
}
static void silence(struct answer* answer) {
  answer->size = -1; /* the provider times out */
}
/* True, but comes when the provider has timed out once. */
static void late(struct answer* answer) {
  (void)answer;
}
static void negative_error(struct answer* answer) {
  answer->said.error = -5;
}
static void terminal_codes(struct answer* answer) {
  answer->said.error = EINVAL;
  strcpy(answer->said.u.reason, "\033[2J\007");
}
static void too_few(struct answer* answer) {
  if (answer->count > 0) close(answer->fds[--answer->count]);
}
static void too_many(struct answer* answer) {
  while (answer->count < kMaxFds)
    put(answer, answer->count, open("/dev/null", O_RDONLY | O_CLOEXEC));
}
static void small(struct answer* answer) {
  put(answer, 0, memory(0, F_SEAL_SHRINK | F_SEAL_GROW));
}
static void far_pages(struct answer* answer) {
  answer->said.u.mr.offset = UINT64_MAX - 4095;
}
static void odd_pages(struct answer* answer) {
  answer->said.u.mr.offset = 8;
}
static void unsealed(struct answer* answer) {
  int fd = memory(1 << 23, 0);
  put(answer, 0, fd);
  asked.op = ROCEFS_OP_COUNT;
  /* Shrinks when it is mapped. */
  passed = dup(fd);
}
static void no_memory(struct answer* answer) {
  put(answer, 0, open("/dev/zero", O_RDWR | O_CLOEXEC));
}
static void broken_pipe(struct answer* answer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) abort();
  close(ends[0]);
  put(answer, 2, ends[1]);
}
static void pipe_of_events(struct answer* answer) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) abort();
  close(ends[0]);
  put(answer, 0, ends[1]);
}
static void no_ports(struct answer* answer) {
  answer->said.u.device.ports = 0;
}
static void much_inline(struct answer* answer) {
  answer->said.u.device.max_inline = kHuge;
}
static void many_gids(struct answer* answer) {
  answer->said.u.port.gid_table_len = kHuge;
}
static void odd_entries(struct answer* answer) {
  answer->said.u.created.entries = 3;
}
static void no_entries(struct answer* answer) {
  answer->said.u.created.entries = 0;
}
static void many_entries(struct answer* answer) {
  answer->said.u.created.entries = answer->said.u.created.receive_entries = 1 << 30;
}
static void large(struct answer* answer) {
  answer->said.u.created.size = UINT64_C(1) << 40;
}
static void far_sends(struct answer* answer) {
  answer->said.u.created.send_offset = UINT64_MAX - 4095;
}
static void far_receives(struct answer* answer) {
  answer->said.u.created.receive_offset = answer->said.u.created.size - 8;
}
static void far_doorbell(struct answer* answer) {
  answer->said.u.created.doorbell = 1 << 30;
}
static void no_number(struct answer* answer) {
  answer->said.u.created.qpn = UINT32_MAX;
}
static void inline_without_end(struct answer* answer) {
  answer->said.u.created.max_inline = 1 << 20;
}
static void many_events(struct answer* answer) {
  answer->said.u.events.completions = answer->said.u.events.asynchronous = 1000;
}
static void far_ahead(struct answer* answer) {
  struct rocefs_cq_page* page = look_into(answer->fds[0], sizeof *page);
  page->produced = 1 << 30;
}
static void complete(struct answer* answer, struct rocefs_cqe cqe) {
  char* page = look_into(answer->fds[0], answer->said.u.created.size);
  *(struct rocefs_cqe*)(void*)(page + ROCEFS_CQ_ENTRIES) = cqe;
  ((struct rocefs_cq_page*)(void*)page)->produced = 1;
}
/* Register pages with a queue pair, and a clock close to overflow. */
static void late_clock(struct answer* answer) {
  int fd = memory(sizeof(struct rocefs_signals_page), F_SEAL_SHRINK);
  struct rocefs_signals_page* page = look_into(fd, sizeof *page);
  page->version = ROCEFS_REGISTERS_VERSION;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  page->base_ns = INT64_MAX - 10;
  page->since_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  page->dilation = UINT64_C(1) << 40;
  page->active[0] = 1;
  page->qps[0].generation = 1;
  put(answer, 0, fd);
}
static void changing_clock(struct answer* answer) {
  late_clock(answer);
  struct rocefs_signals_page* page = look_into(answer->fds[0], sizeof *page);
  page->clock_sequence = 1;
}
/* A copy for memory that is not a region. */
static char own[4096];
static volatile struct rocefs_copier_page* copies;
static void copy_of_no_region(struct answer* answer) {
  copies = look_into(answer->fds[0], sizeof *copies);
  copies->copies[0].address = (uintptr_t)own;
  copies->copies[0].length = sizeof own;
  copies->copies[0].state = ROCEFS_COPY_POSTED;
}
__attribute__((destructor)) static void look_at_copy(void) {
  if (!copies || copies->copies[0].state != ROCEFS_COPY_DONE) return;
  fprintf(stderr, "the copier has read what is no region\n");
  _exit(99);
}
static void made_up_pair(struct answer* answer) {
  complete(answer, (struct rocefs_cqe){.qpn = 17, .qp = NOBODY});
}
static void made_up_number(struct answer* answer) {
  complete(answer, (struct rocefs_cqe){.qpn = UINT32_MAX - 4096, .qp = NOBODY});
}
static void made_up_status(struct answer* answer) {
  complete(answer, (struct rocefs_cqe){.status = kHuge});
}
static void made_up_opcode(struct answer* answer) {
  complete(answer, (struct rocefs_cqe){.opcode = kHuge});
}
static void released_ahead(struct answer* answer) {
  struct rocefs_qp_page* page = look_into(answer->fds[0], sizeof *page);
  page->receive.released = page->send.released = 1 << 30;
}
static void posted_ahead(struct answer* answer) {
  struct rocefs_qp_page* page = look_into(answer->fds[0], sizeof *page);
  page->receive.posted = page->send.posted = 1 << 30;
}
static void tell(uint64_t element, uint32_t type) {
  struct rocefs_async_event event = {.element = element, .type = type};
  if (send(passed, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) abort();
}
static void pair_event(struct answer* answer) {
  (void)answer;
  tell(NOBODY, IBV_EVENT_QP_FATAL);
}
static void queue_event(struct answer* answer) {
  (void)answer;
  tell(NOBODY, IBV_EVENT_WQ_FATAL);
}
static void port_event(struct answer* answer) {
  (void)answer;
  tell(200, IBV_EVENT_PORT_ERR);
}
static void unknown_event(struct answer* answer) {
  (void)answer;
  tell(NOBODY, kHuge);
}
static void completion_event(struct answer* answer) {
  uint64_t cookie = NOBODY;
  (void)answer;
  if (send(passed, &cookie, sizeof cookie, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) abort();
}

static const struct {
  const char* name;
  uint32_t op;
  void (*tell)(struct answer*);
} kLies[] = {
    {"hello-short", ROCEFS_OP_HELLO, cut_short},
    {"hello-end", ROCEFS_OP_HELLO, end},
    {"hello-silence", ROCEFS_OP_HELLO, silence},
    {"hello-error", ROCEFS_OP_HELLO, negative_error},
    {"hello-codes", ROCEFS_OP_HELLO, terminal_codes},
    {"hello-few", ROCEFS_OP_HELLO, too_few},
    {"hello-many", ROCEFS_OP_HELLO, too_many},
    {"hello-small", ROCEFS_OP_HELLO, small},
    {"hello-unsealed", ROCEFS_OP_HELLO, unsealed},
    {"hello-no-memory", ROCEFS_OP_HELLO, no_memory},
    {"hello-pipe", ROCEFS_OP_HELLO, broken_pipe},
    {"hello-ports", ROCEFS_OP_HELLO, no_ports},
    {"hello-inline", ROCEFS_OP_HELLO, much_inline},
    {"pair-event", ROCEFS_OP_HELLO, pair_event},
    {"queue-event", ROCEFS_OP_HELLO, queue_event},
    {"port-event", ROCEFS_OP_HELLO, port_event},
    {"unknown-event", ROCEFS_OP_HELLO, unknown_event},
    {"port-gids", ROCEFS_OP_QUERY_PORT, many_gids},
    {"port-end", ROCEFS_OP_QUERY_PORT, end},
    {"completion-event", ROCEFS_OP_CREATE_CHANNEL, completion_event},
    {"region-short", ROCEFS_OP_REG_MR, cut_short},
    {"region-many", ROCEFS_OP_REG_MR, too_many},
    {"region-late", ROCEFS_OP_REG_MR, late},
    {"domain-late", ROCEFS_OP_ALLOC_PD, late},
    {"shared-small", ROCEFS_OP_SHARE_MR, small},
    {"shared-unsealed", ROCEFS_OP_SHARE_MR, unsealed},
    {"shared-far", ROCEFS_OP_SHARE_MR, far_pages},
    {"shared-odd", ROCEFS_OP_SHARE_MR, odd_pages},
    {"copier-few", ROCEFS_OP_CREATE_COPIER, too_few},
    {"copier-small", ROCEFS_OP_CREATE_COPIER, small},
    {"copier-unsealed", ROCEFS_OP_CREATE_COPIER, unsealed},
    {"copier-elsewhere", ROCEFS_OP_CREATE_COPIER, copy_of_no_region},
    {"cq-end", ROCEFS_OP_CREATE_CQ, end},
    {"cq-few", ROCEFS_OP_CREATE_CQ, too_few},
    {"cq-small", ROCEFS_OP_CREATE_CQ, small},
    {"cq-unsealed", ROCEFS_OP_CREATE_CQ, unsealed},
    {"cq-large", ROCEFS_OP_CREATE_CQ, large},
    {"cq-odd", ROCEFS_OP_CREATE_CQ, odd_entries},
    {"cq-none", ROCEFS_OP_CREATE_CQ, no_entries},
    {"cq-entries", ROCEFS_OP_CREATE_CQ, many_entries},
    {"far-ahead", ROCEFS_OP_CREATE_CQ, far_ahead},
    {"made-up-pair", ROCEFS_OP_CREATE_CQ, made_up_pair},
    {"made-up-number", ROCEFS_OP_CREATE_CQ, made_up_number},
    {"made-up-status", ROCEFS_OP_CREATE_CQ, made_up_status},
    {"made-up-opcode", ROCEFS_OP_CREATE_CQ, made_up_opcode},
    {"resize-small", ROCEFS_OP_RESIZE_CQ, small},
    {"resize-entries", ROCEFS_OP_RESIZE_CQ, many_entries},
    {"srq-few", ROCEFS_OP_CREATE_SRQ, too_few},
    {"srq-small", ROCEFS_OP_CREATE_SRQ, small},
    {"srq-far", ROCEFS_OP_CREATE_SRQ, far_receives},
    {"srq-doorbell", ROCEFS_OP_CREATE_SRQ, far_doorbell},
    {"qp-short", ROCEFS_OP_CREATE_QP, cut_short},
    {"qp-few", ROCEFS_OP_CREATE_QP, too_few},
    {"qp-many", ROCEFS_OP_CREATE_QP, too_many},
    {"qp-small", ROCEFS_OP_CREATE_QP, small},
    {"qp-unsealed", ROCEFS_OP_CREATE_QP, unsealed},
    {"qp-large", ROCEFS_OP_CREATE_QP, large},
    {"qp-sends", ROCEFS_OP_CREATE_QP, far_sends},
    {"qp-receives", ROCEFS_OP_CREATE_QP, far_receives},
    {"qp-odd", ROCEFS_OP_CREATE_QP, odd_entries},
    {"qp-none", ROCEFS_OP_CREATE_QP, no_entries},
    {"qp-entries", ROCEFS_OP_CREATE_QP, many_entries},
    {"qp-doorbell", ROCEFS_OP_CREATE_QP, far_doorbell},
    {"qp-number", ROCEFS_OP_CREATE_QP, no_number},
    {"qp-inline", ROCEFS_OP_CREATE_QP, inline_without_end},
    {"released-ahead", ROCEFS_OP_CREATE_QP, released_ahead},
    {"posted-ahead", ROCEFS_OP_CREATE_QP, posted_ahead},
    {"pcc-short", ROCEFS_OP_PCC_RUN, cut_short},
    {"pcc-few", ROCEFS_OP_PCC_RUN, too_few},
    {"pcc-many", ROCEFS_OP_PCC_RUN, too_many},
    {"pcc-small", ROCEFS_OP_PCC_RUN, small},
    {"pcc-unsealed", ROCEFS_OP_PCC_RUN, unsealed},
    {"pcc-late", ROCEFS_OP_PCC_RUN, late_clock},
    {"pcc-changing", ROCEFS_OP_PCC_RUN, changing_clock},
    {"cm-pipe", ROCEFS_OP_CM_OPEN, pipe_of_events},
    {"cm-few", ROCEFS_OP_CM_OPEN, too_few},
    {"cm-end", ROCEFS_OP_CM_OPEN, end},
    {"destroy-qp-events", ROCEFS_OP_DESTROY_QP, many_events},
    {"destroy-cq-events", ROCEFS_OP_DESTROY_CQ, many_events},
    {"destroy-cq-end", ROCEFS_OP_DESTROY_CQ, end},
};

/* Two versions: the engine's greeting has a later one, the program's introduction an earlier. */
static const char kVersions[] = "versions";
static bool of_two_versions(void) {
  const char* name = getenv("LIE");
  return name && !strcmp(name, kVersions);
}
static void greet_later(void* data, ssize_t size) {
  struct rocefs_greeting greeting;
  if (size != sizeof greeting || !of_two_versions()) return;
  memcpy(&greeting, data, sizeof greeting);
  if (greeting.magic == ROCEFS_UAPI_MAGIC) ++greeting.version;
  memcpy(data, &greeting, sizeof greeting);
}

static void (*chosen(uint32_t op))(struct answer*) {
  const char* name = getenv("LIE");
  if (!name || !strcmp(name, "none")) return NULL;
  for (size_t i = 0; i < sizeof kLies / sizeof kLies[0]; ++i)
    if (!strcmp(kLies[i].name, name)) return kLies[i].op == op ? kLies[i].tell : NULL;
  if (!strncmp(name, "cm-", 3)) return NULL; /* in liar_cm.c */
  if (!strcmp(name, kVersions)) return NULL;
  abort();
}

/* ---- Interposed functions ---- */

static int passed_with(const struct msghdr* message) {
  struct cmsghdr* part = message->msg_control ? CMSG_FIRSTHDR(message) : NULL;
  int fd = -1;
  if (part && part->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  ssize_t (*next)(int, const struct msghdr*, int) = dlsym(RTLD_NEXT, "sendmsg");
  if (message->msg_iovlen == 1 && message->msg_iov->iov_len == sizeof asked) {
    memcpy(&asked, message->msg_iov->iov_base, sizeof asked);
    if (passed >= 0) close(passed);
    passed = passed_with(message);
  }
  see_cm_command(message);
  return next(fd, message, flags);
}

/* Sends as libmango does. */
ssize_t send(int fd, const void* data, size_t size, int flags) {
  ssize_t (*next)(int, const void*, size_t, int) = dlsym(RTLD_NEXT, "send");
  struct rocefs_introduction earlier;
  if (size == sizeof asked) memcpy(&asked, data, sizeof asked);
  if (size == sizeof earlier && of_two_versions()) {
    memcpy(&earlier, data, sizeof earlier);
    --earlier.version;
    data = &earlier;
  }
  return next(fd, data, size, flags);
}

/* Descriptors beyond the room that was made for them are lost, as the kernel loses them. */
static void give(struct answer* answer, struct msghdr* message, size_t room) {
  struct cmsghdr* part = message->msg_control;
  size_t most = room < CMSG_LEN(0) ? 0 : (room - CMSG_LEN(0)) / sizeof(int);
  unsigned count = answer->count < most ? answer->count : (unsigned)most;
  for (unsigned i = count; i < answer->count; ++i) close(answer->fds[i]);
  message->msg_controllen = 0;
  if (count == 0) return;
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = message->msg_controllen = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(part), answer->fds, count * sizeof(int));
}

static void take(struct answer* answer, struct msghdr* message) {
  struct cmsghdr* part = CMSG_FIRSTHDR(message);
  if (!part) return;
  answer->count = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  memcpy(answer->fds, CMSG_DATA(part), answer->count * sizeof(int));
}

ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  ssize_t (*next)(int, struct msghdr*, int) = dlsym(RTLD_NEXT, "recvmsg");
  struct answer answer = {.count = 0};
  size_t room = message->msg_controllen;
  bool is_answer = message->msg_iovlen == 1 && message->msg_iov->iov_len == sizeof answer.said;
  void (*lie)(struct answer*) = is_answer ? chosen(asked.op) : NULL;
  static bool waited;
  if (lie == late && !waited) {
    waited = true;
    errno = EAGAIN;
    return -1;
  }
  answer.size = next(fd, message, flags);
  greet_later(message->msg_iov->iov_base, answer.size);
  if (!lie || answer.size != sizeof answer.said) return lie_of_cm(message, answer.size);
  memcpy(&answer.said, message->msg_iov->iov_base, sizeof answer.said);
  take(&answer, message);
  lie(&answer);
  memcpy(message->msg_iov->iov_base, &answer.said, sizeof answer.said);
  give(&answer, message, room);
  if (answer.size < 0) errno = EAGAIN;
  return answer.size;
}

/* An unsealed memfd shrinks as soon as it is mapped. */
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  void* (*next)(void*, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  void* at = next(address, size, protection, flags, fd, offset);
  if (fd >= 0 && passed >= 0 && asked.op == ROCEFS_OP_COUNT && ftruncate(passed, 0)) abort();
  return at;
}
