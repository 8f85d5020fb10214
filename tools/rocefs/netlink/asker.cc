#include "tools/rocefs/netlink/asker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace rocefs {

bool Asker::read(uint64_t address, void* into, size_t size) const {
  iovec local{into, size}, remote{reinterpret_cast<void*>(address), size};
  return ::process_vm_readv(thread_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

bool Asker::write(uint64_t address, const void* from, size_t size) const {
  if (size == 0) return true;
  iovec local{const_cast<void*>(from), size}, remote{reinterpret_cast<void*>(address), size};
  return ::process_vm_writev(thread_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::string Asker::link(int descriptor) const {
  char text[64];
  std::string path = fmt::format("/proc/{}/fd/{}", thread_, descriptor);
  ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

uint64_t Asker::socket_number(int descriptor) const {
  unsigned long number = 0;
  return std::sscanf(link(descriptor).c_str(), "socket:[%lu]", &number) == 1 ? number : 0;
}

bool Asker::has_descriptor(int descriptor) const {
  return !link(descriptor).empty();
}

std::string Asker::status_line(const std::string& key) const {
  std::ifstream status(fmt::format("/proc/{}/status", thread_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  }
  return "";
}

// pidfd_open(2) takes the leader of the threads.
Fd Asker::copy(int descriptor) const {
  int leader = std::atoi(status_line("Tgid").c_str());
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, leader, 0)));
  if (!process) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
}

Fd Asker::root() const {
  return Fd(
      ::open(fmt::format("/proc/{}/root", thread_).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
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
