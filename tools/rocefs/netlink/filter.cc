#include "tools/rocefs/netlink/filter.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

namespace rocefs {
namespace {

// Numbers of socket(2) in the ABIs that one kernel runs.
struct SocketCall {
  uint32_t arch;
  uint32_t number;
};
constexpr uint32_t kX32 = 0x40000000;  // bit of the x32 ABI, which shares AUDIT_ARCH_X86_64
constexpr SocketCall kSocketCalls[] = {
    {AUDIT_ARCH_X86_64, 41},   {AUDIT_ARCH_X86_64, kX32 | 41}, {AUDIT_ARCH_I386, 359},
    {AUDIT_ARCH_AARCH64, 198}, {AUDIT_ARCH_ARM, 281},
};
#if defined __x86_64__
constexpr uint32_t kOwnArch = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
constexpr uint32_t kOwnArch = AUDIT_ARCH_AARCH64;
#endif
constexpr uint32_t kAnsweredCalls[] = {SYS_write,    SYS_writev,  SYS_bind,        SYS_connect,
                                       SYS_sendto,   SYS_sendmsg, SYS_getsockname, SYS_setsockopt,
                                       SYS_recvfrom, SYS_recvmsg};

constexpr uint32_t kArch = offsetof(seccomp_data, arch);
constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
// Offset of the low half of an argument: domain, protocol and descriptors are ints.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
constexpr uint32_t argument(int index) {
  return offsetof(seccomp_data, args) + index * sizeof(uint64_t);
}

constexpr sock_filter load(uint32_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}
constexpr sock_filter skip_unless(uint32_t value, uint8_t instructions) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, instructions);
}
constexpr sock_filter skip_below(uint32_t value, uint8_t instructions) {
  return BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, instructions);
}
constexpr sock_filter skip_above(uint32_t value, uint8_t instructions) {
  return BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, instructions, 0);
}
constexpr sock_filter answer(uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

void add_socket(std::vector<sock_filter>& code, const SocketCall& call, uint32_t action) {
  code.insert(code.end(),
              {load(kArch), skip_unless(call.arch, 7), load(kNumber), skip_unless(call.number, 5),
               load(argument(0)), skip_unless(AF_NETLINK, 3), load(argument(2)),
               skip_unless(NETLINK_RDMA, 1), answer(action)});
}

}  // namespace

std::vector<sock_filter> refusing_filter() {
  std::vector<sock_filter> code;
  for (const SocketCall& call : kSocketCalls) {
    add_socket(code, call, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
  }
  code.push_back(answer(SECCOMP_RET_ALLOW));
  return code;
}

std::vector<sock_filter> notifying_filter() {
  std::vector<sock_filter> code;
  for (const SocketCall& call : kSocketCalls) {
    bool own = call.arch == kOwnArch && call.number == SYS_socket;
    add_socket(code, call, own ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
  }
  for (uint32_t call : kAnsweredCalls) {
    code.insert(code.end(), {load(kArch), skip_unless(kOwnArch, 6), load(kNumber),
                             skip_unless(call, 4), load(argument(0)), skip_below(kLowestSocket, 2),
                             skip_above(kHighestSocket, 1), answer(SECCOMP_RET_USER_NOTIF)});
  }
  code.push_back(answer(SECCOMP_RET_ALLOW));
  return code;
}

}  // namespace rocefs
