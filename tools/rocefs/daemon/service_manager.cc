#include "tools/rocefs/daemon/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/fd.h"
#include "core/base/kstrto.h"

namespace rocefs {
namespace {

constexpr TimeNs kSendTimeout = kSecond;  // if the manager does not read
constexpr uint64_t kMaxWatchdogUs = 1'000'000'000'000;

// Takes a variable out of the environment.
std::string taken(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value ? value : "";
  ::unsetenv(name);
  return text;
}

// Fills the address and returns its length; nothing if `text` is no address of a unix socket. "@"
// begins a name of the abstract namespace (unix(7)).
std::optional<socklen_t> parse(const std::string& text, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (text.size() < 2 || text.size() >= sizeof address.sun_path) return std::nullopt;
  if (text[0] != '/' && text[0] != '@') return std::nullopt;
  text.copy(address.sun_path, text.size());
  if (text[0] == '@') address.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
}

// Replaces control characters: a mount point may contain any, and a newline would begin another
// variable.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' '; }, '?');
  return line;
}

}  // namespace

ServiceManager ServiceManager::from_environment() {
  ServiceManager manager;
  manager.address_ = taken("NOTIFY_SOCKET");
  std::string period = taken("WATCHDOG_USEC"), process = taken("WATCHDOG_PID");
  Result<uint64_t> us = kstrtou64(period, 10);
  bool ours = process.empty() || process == std::to_string(::getpid());
  if (us && *us <= kMaxWatchdogUs && ours && !manager.address_.empty()) {
    manager.watchdog_ = static_cast<TimeNs>(*us) * kMicrosecond;
  }
  return manager;
}

void ServiceManager::ready(pid_t main, std::string_view status) const {
  send(fmt::format("READY=1\nMAINPID={}\nSTATUS={}", main, one_line(status)));
}

void ServiceManager::status(std::string_view status) const {
  send("STATUS=" + one_line(status));
}

void ServiceManager::stopping(std::string_view status) const {
  send("STOPPING=1\nSTATUS=" + one_line(status));
}

void ServiceManager::alive() const {
  send("WATCHDOG=1");
}

// Opens a socket for each datagram, so that workers inherit none.
void ServiceManager::send(const std::string& text) const {
  sockaddr_un address{};
  std::optional<socklen_t> length = parse(address_, address);
  if (!length) return;
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  timeval timeout{kSendTimeout / kSecond, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  (void)!::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&address), *length);
}

}  // namespace rocefs
