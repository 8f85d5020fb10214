/* Rules for programs of librdmacm that a process of its own must show: cm_rules CASE. Says what is
 * wrong, and ends with status 1. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Declarations of rdma/rdma_cma.h, which need not be here. */
struct rdma_event_channel;
struct rdma_cm_id;
struct rdma_cm_event;
extern struct rdma_event_channel* rdma_create_event_channel(void);
extern void rdma_destroy_event_channel(struct rdma_event_channel* channel);
extern int rdma_create_id(struct rdma_event_channel* channel, struct rdma_cm_id** id, void* user,
                          int space);
extern int rdma_destroy_id(struct rdma_cm_id* id);
extern int rdma_bind_addr(struct rdma_cm_id* id, struct sockaddr* address);
extern int rdma_set_option(struct rdma_cm_id* id, int level, int name, void* value, size_t length);
extern int rdma_listen(struct rdma_cm_id* id, int backlog);
extern int rdma_get_cm_event(struct rdma_event_channel* channel, struct rdma_cm_event** event);
enum { kTcp = 0x106, kPort = 7399, kOptionId = 0, kOptionTypeOfService = 0 };

#define REQUIRE(condition) \
  if (!(condition)) fail(__LINE__, #condition)
static void fail(int line, const char* condition) {
  printf("line %d: %s (errno %d, %s)\n", line, condition, errno, strerror(errno));
  exit(1);
}

static int open_descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  REQUIRE(directory);
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

static struct rdma_event_channel* open_channel(void) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  REQUIRE(channel);
  return channel;
}
static struct rdma_cm_id* make_id(struct rdma_event_channel* channel) {
  struct rdma_cm_id* id;
  REQUIRE(!rdma_create_id(channel, &id, NULL, kTcp));
  return id;
}
static int bind_to(struct rdma_cm_id* id, uint16_t port) {
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
  return rdma_bind_addr(id, (struct sockaddr*)&any);
}

static void* get_event(void* channel) {
  struct rdma_cm_event* event;
  rdma_get_cm_event(channel, &event);
  return NULL;
}

/* Threads are cancelled while they wait for an event, or on their way there. */
static void cancelled_waiters(void) {
  rdma_destroy_event_channel(open_channel()); /* what is opened once stays */
  int before = open_descriptors();
  for (int round = 0; round < 100; ++round) {
    struct rdma_event_channel* channel = open_channel();
    struct rdma_cm_id* id = make_id(channel);
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, get_event, channel));
    for (volatile int spin = 0; spin < round * 2000; ++spin) {
    }
    REQUIRE(!pthread_cancel(thread) && !pthread_join(thread, NULL));
    REQUIRE(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
  }
  REQUIRE(open_descriptors() == before);
}

static struct rdma_cm_id* bound;
static int cancels;

static void* bind_late(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&cancels, __ATOMIC_ACQUIRE)) {
  }
  bind_to(bound, 0);
  pthread_testcancel();
  return NULL;
}

/* A thread is cancelled, and its next command would be where that ends it. */
static void cancelled_command(void) {
  struct rdma_event_channel* channel = open_channel();
  pthread_t thread;
  bound = make_id(channel);
  REQUIRE(!pthread_create(&thread, NULL, bind_late, NULL) && !pthread_cancel(thread));
  __atomic_store_n(&cancels, 1, __ATOMIC_RELEASE);
  REQUIRE(!pthread_join(thread, NULL));
  REQUIRE(!rdma_listen(bound, 1));
  REQUIRE(!rdma_destroy_id(bound));
  rdma_destroy_event_channel(channel);
}

/* Gives commands for which librdmacm takes no lock of its own: those stay locked in a child. */
static void* command_again(void* id) {
  uint8_t class = 0;
  while (!__atomic_load_n(&cancels, __ATOMIC_ACQUIRE))
    REQUIRE(!rdma_set_option(id, kOptionId, kOptionTypeOfService, &class, sizeof class));
  return NULL;
}

/* Does in a child of fork() all that it may not do, and must not wait for. */
static int misuse(struct rdma_event_channel* channel, struct rdma_cm_id* id) {
  struct rdma_cm_id* other;
  struct rdma_cm_event* event;
  alarm(20);
  errno = 0;
  if (!rdma_create_id(channel, &other, NULL, kTcp) || errno != EACCES) return 1;
  errno = 0;
  if (!rdma_get_cm_event(channel, &event) || errno != EACCES) return 2;
  errno = 0;
  if (!rdma_listen(id, 2) || errno != EACCES) return 3;
  errno = 0;
  if (!rdma_destroy_id(id) || errno != EACCES) return 4;
  rdma_destroy_event_channel(channel);
  struct rdma_event_channel* own = open_channel();
  return rdma_destroy_id(make_id(own)) ? 5 : 0;
}

/* Children use the channel of their parent, a thread of which uses it at the same time. */
static void children(void) {
  struct rdma_event_channel* channel = open_channel();
  struct rdma_cm_id *listener = make_id(channel), *second = make_id(channel);
  pthread_t thread;
  REQUIRE(!bind_to(listener, kPort) && !rdma_listen(listener, 4));
  REQUIRE(!pthread_create(&thread, NULL, command_again, second));
  for (int round = 0; round < 50; ++round) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(misuse(channel, listener));
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (status) printf("child: status %x\n", (unsigned)status);
    REQUIRE(status == 0);
  }
  __atomic_store_n(&cancels, 1, __ATOMIC_RELEASE);
  REQUIRE(!pthread_join(thread, NULL));
  REQUIRE(bind_to(second, kPort) && errno == EADDRINUSE); /* the listener is still there */
  REQUIRE(!rdma_destroy_id(second) && !rdma_destroy_id(listener));
  rdma_destroy_event_channel(channel);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kCases[] = {
      {"waiters", cancelled_waiters}, {"command", cancelled_command}, {"children", children}};
  alarm(50);
  for (size_t i = 0; count == 2 && i < sizeof kCases / sizeof kCases[0]; ++i) {
    if (strcmp(arguments[1], kCases[i].name)) continue;
    kCases[i].run();
    return 0;
  }
  return 2;
}
