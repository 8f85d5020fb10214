#include "tools/rocefs/daemon/service_manager.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>

#include "core/base/fd.h"

using namespace rocefs;

namespace {

// Socket of a service manager: "@name" or "/path", as in $NOTIFY_SOCKET.
struct Listener {
  explicit Listener(const std::string& where) : name(where) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  }
  ~Listener() {
    if (name[0] == '/') ::unlink(name.c_str());
  }
  std::string heard() {
    char text[8192];
    ssize_t size = ::recv(socket.get(), text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

  std::string name;
  Fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

std::string unique(const std::string& prefix) {
  return prefix + "rocefs-service-test." + std::to_string(::getpid());
}

ServiceManager manager(const std::string& socket, const char* us = "",
                       const std::string& pid = "") {
  ::setenv("NOTIFY_SOCKET", socket.c_str(), 1);
  ::setenv("WATCHDOG_USEC", us, 1);
  if (!pid.empty()) ::setenv("WATCHDOG_PID", pid.c_str(), 1);
  return ServiceManager::from_environment();
}

}  // namespace

TEST_CASE(
    "service manager: it gets READY, STATUS, WATCHDOG and STOPPING, by path and by abstract name") {
  for (const char* prefix : {"@", "/tmp/"}) {
    Listener listener(unique(prefix));
    ServiceManager told = manager(listener.name);
    told.ready(42, "serving /mnt");
    CHECK(listener.heard() == "READY=1\nMAINPID=42\nSTATUS=serving /mnt");
    told.status("worker 7");
    CHECK(listener.heard() == "STATUS=worker 7");
    told.alive();
    CHECK(listener.heard() == "WATCHDOG=1");
    told.stopping("unmounting /mnt");
    CHECK(listener.heard() == "STOPPING=1\nSTATUS=unmounting /mnt");
    CHECK(listener.heard().empty());
  }
}

TEST_CASE("service manager: a newline in the mount point's name cannot add a variable") {
  Listener listener(unique("@"));
  manager(listener.name).ready(42, "serving /tmp/a\nMAINPID=1\tb");
  CHECK(listener.heard() == "READY=1\nMAINPID=42\nSTATUS=serving /tmp/a?MAINPID=1?b");
}

TEST_CASE("service manager: no child inherits its variables") {
  manager("@nobody", "1000000", std::to_string(::getpid()));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    CAPTURE(name);
    CHECK(::getenv(name) == nullptr);
  }
}

TEST_CASE("service manager: a watchdog for another process is ignored") {
  std::string here = std::to_string(::getpid()), parent = std::to_string(::getppid());
  CHECK(manager("@a", "3000000").watchdog() == 3 * kSecond);
  CHECK(manager("@a", "3000000", here).watchdog() == 3 * kSecond);
  CHECK(manager("@a", "3000000", parent).watchdog() == 0);
  CHECK(manager("", "3000000").watchdog() == 0);
  for (const char* us : {"", "0", "-1", "x", "99999999999999999999", "9999999999999999"}) {
    CAPTURE(us);
    CHECK(manager("@a", us).watchdog() == 0);
  }
}

TEST_CASE("service manager: an invalid address, or one without a listener, is ignored") {
  for (std::string socket :
       {"", "@", "/", "relative/path", "vsock:2:1234", "@nobody", "/tmp/none"}) {
    CAPTURE(socket);
    manager(socket).ready(1, "serving");
  }
  manager("/" + std::string(200, 'x')).ready(1, "serving");
}
