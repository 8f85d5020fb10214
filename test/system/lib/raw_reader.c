// raw_reader FILE…: prints files by system calls alone, with no C library that anything could be
// preloaded into, in the order in which Go's os.ReadFile makes them: openat, fstat, epoll,
// O_NONBLOCK, read until the end. Built with -static -nostdlib -ffreestanding.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static long call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
#error "no system calls known for this machine"
#endif
}

static int print(const char* path) {
  static char buffer[4608];  // Go reads into the file's size and 512 more
  struct stat status;
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
  long fd = call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0 || call(SYS_fstat, fd, (long)&status, 0, 0) < 0) return 1;
  long poll = call(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0);
  if (call(SYS_epoll_ctl, poll, EPOLL_CTL_ADD, fd, (long)&event) == 0) {
    call(SYS_fcntl, fd, F_SETFL, O_RDONLY | O_NONBLOCK, 0);
  }
  long size;
  while ((size = call(SYS_read, fd, (long)buffer, sizeof buffer, 0)) > 0) {
    if (call(SYS_write, 1, (long)buffer, size, 0) != size) return 1;
  }
  call(SYS_close, poll, 0, 0, 0);
  call(SYS_close, fd, 0, 0, 0);
  return size < 0;
}

__attribute__((used)) void run(long* stack) {
  int failed = 0;
  for (long i = 1; i < stack[0]; ++i) failed |= print((const char*)stack[1 + i]);
  call(SYS_exit_group, failed, 0, 0, 0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call run\n");
#else
__asm__(".globl _start\n_start: mov x0, sp\n bl run\n");
#endif
