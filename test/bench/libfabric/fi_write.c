/* fi_write ADDRESS SOCKET LENGTH [COUNT]: one side of libfabric's emulation of RDMA over UDP. With
 * COUNT it writes as many messages to the other side's memory, at most 16 at a time, and prints the
 * nanoseconds per message; without, it is the other side, until it is killed. They exchange
 * addresses through SOCKET, a descriptor. A separate program, because the library reads the
 * machine's interfaces once. */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/network/fabric.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, WARM = 32 };

struct told {
  uint8_t name[64];
  size_t name_len;
  uint64_t address, key;
};

static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_cq* cq;
static struct fid_av* av;
static struct fid_ep* endpoint;
static struct fid_mr* memory;
static char* bytes;
static size_t length;

static void ok(int rc, const char* what) {
  if (rc == 0) return;
  fprintf(stderr, "fi_write: %s: %s\n", what, fi_strerror(-rc));
  exit(1);
}

static void open_endpoint(const char* address) {
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->fabric_attr->prov_name = strdup("udp;ofi_rxd");
  ok(fi_getinfo(FI_VERSION(1, 11), address, NULL, FI_SOURCE, hints, &info), "udp;ofi_rxd");
  fi_freeinfo(hints);
  ok(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
  ok(fi_domain(fabric, info, &domain, NULL), "fi_domain");
  struct fi_cq_attr cq_attr = {.size = 256, .format = FI_CQ_FORMAT_CONTEXT};
  ok(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
  struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
  ok(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
  ok(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
  ok(fi_ep_bind(endpoint, &av->fid, 0), "fi_ep_bind");
  ok(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  ok(fi_enable(endpoint), "fi_enable");
  bytes = calloc(1, length);
  memset(bytes, 1, length);
  ok(fi_mr_reg(domain, bytes, length, FI_WRITE | FI_REMOTE_WRITE, 0, 7, 0, &memory, NULL),
     "fi_mr_reg");
}

/* Exchanges the sides' addresses. */
static fi_addr_t swap(int socket, struct told* peer) {
  struct told own = {.name_len = sizeof own.name, .key = fi_mr_key(memory)};
  ok(fi_getname(&endpoint->fid, own.name, &own.name_len), "fi_getname");
  if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) own.address = (uintptr_t)bytes;
  if (write(socket, &own, sizeof own) != sizeof own ||
      read(socket, peer, sizeof *peer) != sizeof *peer) {
    exit(1);
  }
  fi_addr_t to;
  ok(fi_av_insert(av, peer->name, 1, &to, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
  return to;
}

/* Drives the library; returns the number of completions. */
static int progress(void) {
  struct fi_cq_entry entries[DEPTH];
  ssize_t rc = fi_cq_read(cq, entries, DEPTH);
  if (rc == -FI_EAGAIN) return 0;
  ok(rc < 0 ? (int)rc : 0, "fi_cq_read");
  return (int)rc;
}

static double write_all(fi_addr_t to, const struct told* peer, int count) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int posted = 0, completed = 0; completed < count; completed += progress()) {
    while (posted < count && posted - completed < DEPTH) {
      ssize_t rc =
          fi_write(endpoint, bytes, length, fi_mr_desc(memory), to, peer->address, peer->key, NULL);
      if (rc == -FI_EAGAIN) break;
      ok((int)rc, "fi_write");
      ++posted;
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
         count;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  length = strtoul(argv[3], NULL, 0);
  open_endpoint(argv[1]);
  struct told peer;
  fi_addr_t to = swap(atoi(argv[2]), &peer);
  if (argc == 4) {
    for (;;) (void)progress();
  }
  (void)write_all(to, &peer, WARM);
  printf("%.0f\n", write_all(to, &peer, atoi(argv[4])));
  return 0;
}
