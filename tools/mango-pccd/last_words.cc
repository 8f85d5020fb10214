#include "tools/mango-pccd/last_words.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "pcc/run/call.h"

namespace rocefs {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr int kDeadly[] = {SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// Thread-local: signal handlers get no argument for it.
thread_local const LoadingHere* loading_here = nullptr;
// Set once, before there are other threads. Children of plugins inherit handlers and socket, but
// their end is not the card's.
pid_t own_process = 0;

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

// File name of the plugin whose code has called this, empty if none has. Plugins end in .so, the
// system's libraries in a version.
std::string_view plugin_on_stack() {
  void* frames[64];
  const int count = ::backtrace(frames, static_cast<int>(std::size(frames)));
  for (int i = 0; i < count; ++i) {
    Dl_info where;
    if (!::dladdr(frames[i], &where) || !where.dli_fname) continue;
    std::string_view file = where.dli_fname;
    if (file.ends_with(".so")) return file.substr(file.rfind('/') + 1);
  }
  return {};
}

void tell_where() {
  if (::getpid() != own_process) return;
  if (const PccCall* call = PccCall::current()) {
    Words("died in algorithm ").add(call->algorithm()).add(" on QP ").add(call->qpn()).send();
  } else if (loading_here) {
    Words("died while it ").add(loading_here->doing()).add(" ").add(loading_here->file()).send();
  } else if (std::string_view plugin = plugin_on_stack(); !plugin.empty()) {
    Words("died in a thread of ").add(plugin).send();
  }
}

void tell_who_exits() {
  if (::getpid() != own_process) return;
  if (const PccCall* call = PccCall::current()) {
    Words("died algorithm ")
        .add(call->algorithm())
        .add(" called exit() on QP ")
        .add(call->qpn())
        .send();
  } else if (loading_here) {
    Words("died ")
        .add(loading_here->file())
        .add(" called exit() when it was ")
        .add(loading_here->doing())
        .send();
  } else if (std::string_view plugin = plugin_on_stack(); !plugin.empty()) {
    Words("died a thread of ").add(plugin).add(" called exit()").send();
  }
}

// Alternate signal stack of a thread, which each start of PCC makes anew.
class SignalStack {
 public:
  SignalStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t stack{};
    stack.ss_sp = memory_;
    stack.ss_size = kStackBytes;
    ::sigaltstack(&stack, nullptr);
  }
  // A thread that ends from a handler on this stack keeps it.
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (::sigaltstack(&none, nullptr) == 0 && memory_ != MAP_FAILED) ::munmap(memory_, kStackBytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* const memory_ = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
};

// Several threads may die at once, each for its own reason: the first ends the process after its
// message is sent.
void on_deadly_signal(int number) {
  tell_where();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void announce_own_death() {
  static thread_local SignalStack stack;
  struct sigaction action {};
  action.sa_handler = on_deadly_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : kDeadly) ::sigaction(number, &action, nullptr);
}

void announce_own_exit() {
  own_process = ::getpid();
  void* frame;
  ::backtrace(&frame, 1);  // loads its library, which a signal handler cannot
  std::atexit(tell_who_exits);
}

LoadingHere::LoadingHere(const char* file, const char* doing) : file_(file), doing_(doing) {
  loading_here = this;
}
LoadingHere::~LoadingHere() {
  loading_here = nullptr;
}

void end_because(std::string_view why) {
  Words("died ").add(why).send();
  ::_exit(1);
}

}  // namespace rocefs
