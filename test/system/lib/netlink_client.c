// Asks RDMA netlink as programs do that use no library, and prints what is wrong. Linked
// statically.
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int wrong;
#define CHECK(x) \
  if (!(x)) printf("line %d: not so: %s (errno %d)\n", __LINE__, #x, errno), wrong = 1

struct request {
  struct nlmsghdr header;
};

static struct request ask_for(unsigned command, unsigned flags, unsigned sequence) {
  struct request request = {{sizeof request, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
                             NLM_F_REQUEST | flags, sequence, 0}};
  return request;
}

static int make_socket(int flags) {
  int fd = socket(AF_NETLINK, SOCK_RAW | flags, NETLINK_RDMA);
  struct sockaddr_nl name = {.nl_family = AF_NETLINK};
  socklen_t size = sizeof name;
  CHECK(fd >= 0);
  CHECK(bind(fd, (struct sockaddr*)&name, sizeof name) == 0);
  CHECK(getsockname(fd, (struct sockaddr*)&name, &size) == 0 && size == sizeof name);
  CHECK(name.nl_family == AF_NETLINK && name.nl_pid != 0);
  return fd;
}

static void send_to_kernel(int fd, struct request request) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  CHECK(sendto(fd, &request, sizeof request, 0, (struct sockaddr*)&kernel, sizeof kernel) ==
        sizeof request);
}

static void* send_later(void* fd) {
  struct pollfd none = {-1, 0, 0};
  poll(&none, 1, 200);
  send_to_kernel(*(int*)fd, ask_for(RDMA_NLDEV_CMD_SYS_GET, 0, 5));
  return NULL;
}

int main(void) {
  char buffer[16384];
  struct nlmsghdr* answer = (struct nlmsghdr*)buffer;
  int fd = make_socket(SOCK_CLOEXEC);
  CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);

  // A socket that has asked nothing has no answer.
  CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  struct pollfd readable = {fd, POLLIN, 0};
  CHECK(poll(&readable, 1, 0) == 0);

  // A dump by sendto and recvmsg: messages of many parts, and their end; from port 0.
  send_to_kernel(fd, ask_for(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, 1));
  CHECK(poll(&readable, 1, 1000) == 1);
  int devices = 0, done = 0;
  while (!done && !wrong) {
    struct sockaddr_nl from = {.nl_pid = 7};
    struct iovec parts[2] = {{buffer, 8}, {buffer + 8, sizeof buffer - 8}};
    struct msghdr message = {&from, sizeof from, parts, 2, NULL, 0, 0};
    ssize_t size = recvmsg(fd, &message, 0);
    CHECK(size >= (ssize_t)sizeof *answer && (size_t)size == answer->nlmsg_len);
    CHECK(message.msg_namelen == sizeof from && from.nl_family == AF_NETLINK && from.nl_pid == 0);
    CHECK(answer->nlmsg_seq == 1 && (answer->nlmsg_flags & NLM_F_MULTI));
    done = answer->nlmsg_type == NLMSG_DONE;
    devices += !done;
  }
  printf("%d devices\n", devices);

  // A short buffer: the length is the whole message's, and a peek takes nothing away.
  send_to_kernel(fd, ask_for(RDMA_NLDEV_CMD_SYS_GET, 0, 2));
  ssize_t whole = recv(fd, buffer, 1, MSG_PEEK | MSG_TRUNC);
  CHECK(whole > (ssize_t)sizeof *answer);
  CHECK(read(fd, buffer, sizeof buffer) == whole && answer->nlmsg_seq == 2);

  // By write(2), with an acknowledgement.
  struct request request = ask_for(RDMA_NLDEV_CMD_SYS_GET, NLM_F_ACK, 3);
  CHECK(write(fd, &request, sizeof request) == sizeof request);
  CHECK(recv(fd, buffer, sizeof buffer, 0) == whole && answer->nlmsg_seq == 3);
  CHECK(recv(fd, buffer, sizeof buffer, 0) > 0 && answer->nlmsg_type == NLMSG_ERROR);
  CHECK(((struct nlmsgerr*)NLMSG_DATA(answer))->error == 0);

  // A command that there is not, one that would change a device, and one for no device.
  struct {
    unsigned command;
    int error;
  } refused[] = {{RDMA_NLDEV_NUM_OPS + 3, -EINVAL},
                 {RDMA_NLDEV_CMD_SYS_SET, -EOPNOTSUPP},
                 {RDMA_NLDEV_CMD_GET, -EINVAL}};
  for (unsigned i = 0; i < sizeof refused / sizeof *refused; ++i) {
    send_to_kernel(fd, ask_for(refused[i].command, 0, 4));
    CHECK(recv(fd, buffer, sizeof buffer, 0) > 0 && answer->nlmsg_type == NLMSG_ERROR);
    CHECK(((struct nlmsgerr*)NLMSG_DATA(answer))->error == refused[i].error);
  }

  // More requests at once than are answered.
  struct request many[65];
  for (int i = 0; i < 65; ++i) many[i] = ask_for(RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP, 6);
  CHECK(send(fd, many, sizeof many, 0) == -1 && errno == ENOBUFS);
  CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);

  // A receiver waits for what another thread asks.
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, send_later, &fd) == 0);
  CHECK(recv(fd, buffer, sizeof buffer, 0) == whole && answer->nlmsg_seq == 5);
  pthread_join(thread, NULL);

  // Wrong calls.
  CHECK(bind(fd, NULL, sizeof(struct sockaddr_nl)) == -1 && errno == EFAULT);
  CHECK(recvfrom(fd, NULL, 100, MSG_DONTWAIT, NULL, NULL) == -1 && errno == EAGAIN);
  CHECK(sendto(fd, NULL, 100, 0, NULL, 0) == -1 && errno == EFAULT);
  CHECK(socket(AF_NETLINK, SOCK_STREAM, NETLINK_RDMA) == -1 && errno == ESOCKTNOSUPPORT);
  int other = make_socket(SOCK_NONBLOCK);
  CHECK(recv(other, buffer, sizeof buffer, 0) == -1 && errno == EAGAIN);
  close(other);

  // As many as there are numbers, again and again.
  for (int round = 0; round < 3; ++round) {
    int many[600], count = 0;
    while (count < 600 && (many[count] = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA)) >= 0) ++count;
    CHECK(count == 511 && errno == EMFILE);
    for (int i = 0; i < count; ++i) close(many[i]);
  }
  return wrong;
}
