#include "tools/mango-pccd/last_words.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pcc/run/call.h"

namespace rocefs {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr int kDeadly[] = {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// Thread-local: signal handlers get no argument for it.
thread_local const char* loading_here = nullptr;

// Message built without allocation: used in signal handlers.
class Words {
 public:
  explicit Words(std::string_view start) { add(start); }
  Words& add(std::string_view text) {
    size_t size = std::min(text.size(), sizeof text_ - size_);
    std::memcpy(text_ + size_, text.data(), size);
    size_ += size;
    return *this;
  }
  Words& add(uint32_t number) {
    char digits[10];
    size_t first = sizeof digits;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return add(std::string_view(digits + first, sizeof digits - first));
  }
  // Non-blocking: the daemon itself may be waiting for this process.
  void send() const { (void)!::send(kDaemonSocket, text_, size_, MSG_DONTWAIT | MSG_NOSIGNAL); }

 private:
  char text_[512];
  size_t size_ = 0;
};

void tell_where() {
  if (const PccCall* call = PccCall::current()) {
    Words("died in algorithm ").add(call->algorithm()).add(" on QP ").add(call->qpn()).send();
  } else if (loading_here) {
    Words("died while it loaded ").add(loading_here).send();
  }
}

// Several threads may die at once, each for its own reason: the first ends the process after its
// message is sent.
void on_deadly_signal(int number) {
  tell_where();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void announce_own_death() {
  // Never freed: needed until the thread ends.
  void* memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory != MAP_FAILED) {
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kStackBytes;
    ::sigaltstack(&stack, nullptr);
  }
  struct sigaction action {};
  action.sa_handler = on_deadly_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : kDeadly) ::sigaction(number, &action, nullptr);
}

LoadingHere::LoadingHere(const char* file) {
  loading_here = file;
}
LoadingHere::~LoadingHere() {
  loading_here = nullptr;
}

void end_because(std::string_view why) {
  Words("died ").add(why).send();
  ::_exit(1);
}

}  // namespace rocefs
