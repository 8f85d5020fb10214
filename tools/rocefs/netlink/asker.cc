#include "tools/rocefs/netlink/asker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace rocefs {

Asker::Asker(int listener, const seccomp_notif& call)
    : listener_(listener),
      id_(call.id),
      thread_(::open(fmt::format("/proc/{}", call.pid).c_str(),
                     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
      memory_(::openat(thread_.get(), "mem", O_RDWR | O_NOFOLLOW | O_CLOEXEC)) {
  if (waits()) return;
  memory_.reset();
  thread_.reset();
}

bool Asker::waits() const {
  uint64_t id = id_;
  return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

// The kernel takes only as much as fits into an offset, and no memory lies beyond.
bool Asker::read(uint64_t address, void* into, size_t size) const {
  return size == 0 || ::pread(memory_.get(), into, size, static_cast<off_t>(address)) ==
                          static_cast<ssize_t>(size);
}

bool Asker::write(uint64_t address, const void* from, size_t size) const {
  return size == 0 || ::pwrite(memory_.get(), from, size, static_cast<off_t>(address)) ==
                          static_cast<ssize_t>(size);
}

std::string Asker::link(int descriptor) const {
  char text[64];
  ssize_t size =
      ::readlinkat(thread_.get(), fmt::format("fd/{}", descriptor).c_str(), text, sizeof text);
  return size > 0 && waits() ? std::string(text, static_cast<size_t>(size)) : "";
}

uint64_t Asker::socket_number(int descriptor) const {
  unsigned long number = 0;
  return std::sscanf(link(descriptor).c_str(), "socket:[%lu]", &number) == 1 ? number : 0;
}

bool Asker::has_descriptor(int descriptor) const {
  return !link(descriptor).empty();
}

// Reads at once: the thread might become another user's program between two reads.
std::string Asker::status_line(const std::string& key) const {
  char text[8192];
  Fd status(::openat(thread_.get(), "status", O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  ssize_t size = ::read(status.get(), text, sizeof text);
  if (size <= 0 || !waits()) return "";
  std::string_view rest(text, static_cast<size_t>(size));
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.starts_with(key + ":\t")) return std::string(line.substr(key.size() + 2));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return "";
}

// pidfd_open(2) takes the leader of the threads. Checks before the copy too, so that no
// descriptor of another process is ever taken.
Fd Asker::copy(int descriptor) const {
  int leader = std::atoi(status_line("Tgid").c_str());
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
  if (!process || !waits()) return {};
  Fd copied(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
  return waits() ? std::move(copied) : Fd();
}

Fd Asker::root() const {
  Fd root(::openat(thread_.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return waits() ? std::move(root) : Fd();
}

// real, effective, saved, file system
std::optional<Asker::User> Asker::user() const {
  unsigned uid, gid;
  if (std::sscanf(status_line("Uid").c_str(), "%*u %*u %*u %u", &uid) != 1 ||
      std::sscanf(status_line("Gid").c_str(), "%*u %*u %*u %u", &gid) != 1) {
    return std::nullopt;
  }
  return User{uid, gid};
}

}  // namespace rocefs
