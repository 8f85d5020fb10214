// Asks RDMA netlink for the devices in its /sys by each call that sends, and prints how many it
// hears of.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static struct nlmsghdr request = {sizeof request,
                                  RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
                                  NLM_F_REQUEST | NLM_F_DUMP, 7, 0};

static const char* answers(int fd, char* text, size_t size) {
  char buffer[65536];
  struct nlmsghdr* answer = (struct nlmsghdr*)buffer;
  struct pollfd readable = {fd, POLLIN, 0};
  int devices = 0;
  while (poll(&readable, 1, 1000) > 0 && recv(fd, buffer, sizeof buffer, 0) > 0) {
    if (answer->nlmsg_type == NLMSG_ERROR) {
      snprintf(text, size, "error %d", ((struct nlmsgerr*)NLMSG_DATA(answer))->error);
      return text;
    }
    if (answer->nlmsg_type == NLMSG_DONE) break;
    ++devices;
  }
  snprintf(text, size, "%d", devices);
  return text;
}

int main(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
  struct sockaddr_nl own = {.nl_family = AF_NETLINK};
  struct iovec part = {&request, sizeof request};
  struct mmsghdr many = {{NULL, 0, &part, 1, NULL, 0, 0}, 0};
  char text[64];
  bind(fd, (struct sockaddr*)&own, sizeof own);
  send(fd, &request, sizeof request, 0);
  printf("send %s", answers(fd, text, sizeof text));
  if (write(fd, &request, sizeof request) != sizeof request) return 1;
  printf(" write %s", answers(fd, text, sizeof text));
  if (writev(fd, &part, 1) != sizeof request) return 1;
  printf(" writev %s", answers(fd, text, sizeof text));
  if (sendmmsg(fd, &many, 1, 0) != 1) return 1;
  printf(" sendmmsg %s", answers(fd, text, sizeof text));
  if (write(dup(fd), &request, sizeof request) != sizeof request) return 1;
  printf(" copy %s\n", answers(fd, text, sizeof text));
}
