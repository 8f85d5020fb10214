// Socket in the mount, and the end of a mount that has one.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fs/mount_watch.h"
#include "test/fs/child.h"

using namespace rocefs;
using namespace rocefs::test;

#define NEEDS_FUSE() \
  if (!fuse_here()) skip("no /dev/fuse here")

namespace {

constexpr char kPath[] = "devices/mb/socket";

// connect(2) or bind(2), as an errno.
template <class Call>
int by_name(Call call, const std::string& path) {
  Fd end(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  bool done = call(end.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  return done ? 0 : errno;
}

Result<Fd> listener_at(Mounted& mounted, const std::string& path) {
  std::promise<Result<Fd>> made;
  mounted.control([&] {
    mounted.session->listen_at(path,
                               [&](Result<Fd> listener) { made.set_value(std::move(listener)); });
  });
  return made.get_future().get();
}

}  // namespace

TEST_CASE("fs: a socket is reachable by its path, and others cannot create or remove one") {
  NEEDS_FUSE();
  Mounted mounted;
  CHECK(by_name(::bind, mounted.path + "/" + kPath) == EPERM);
  Result<Fd> listener = listener_at(mounted, kPath);
  if (!listener) skip(listener.error().reason);
  struct stat status;
  REQUIRE(::stat((mounted.path + "/" + kPath).c_str(), &status) == 0);
  CHECK(status.st_mode == (S_IFSOCK | 0666));
  CHECK(by_name(::connect, mounted.path + "/" + kPath) == 0);
  Fd client(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  CHECK(client);
  CHECK(by_name(::bind, mounted.path + "/" + kPath) == EADDRINUSE);
  CHECK(by_name(::bind, mounted.at("other")) == EPERM);
  CHECK(::unlink((mounted.path + "/" + kPath).c_str()) == -1);
  CHECK(errno == EPERM);
  listener = Error{ENOENT, "closed"};
  CHECK(by_name(::connect, mounted.path + "/" + kPath) == ECONNREFUSED);
}

TEST_CASE("fs: a socket that cannot be created gives a reason and leaves nothing behind") {
  NEEDS_FUSE();
  Mounted mounted;
  Result<Fd> nowhere = listener_at(mounted, "devices/none/socket");
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code != 0);
  Result<Fd> taken = listener_at(mounted, "devices/mb/uint");
  REQUIRE(!taken);
  Result<Fd> lengthy = listener_at(mounted, std::string(200, 'x'));
  REQUIRE(!lengthy);
  CHECK(lengthy.error().code == ENAMETOOLONG);
  CHECK(Mounted::read(mounted.at("uint")) == "1000\n");
  CHECK(by_name(::bind, mounted.path + "/devices/none") == EPERM);
}

TEST_CASE("fs: a mount with a socket can be unmounted, and ends when the socket is closed") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("not root");
  Mounted mounted;
  Result<Fd> listener = listener_at(mounted, kPath);
  if (!listener) skip(listener.error().reason);
  std::atomic<bool> gone{false};
  std::unique_ptr<MountWatch> watch;
  mounted.control([&] {
    watch = std::make_unique<MountWatch>(
        *mounted.session->device(), mounted.loop, [&] { gone = true; }, [](std::string_view) {});
  });
  CHECK(!gone);
  REQUIRE(::umount2(mounted.path.c_str(), 0) == 0);
  CHECK(wait_for([&] { return gone.load(); }));
  pollfd connection{-1, 0, 0};
  mounted.control([&] { connection.fd = mounted.session->descriptor(); });
  CHECK(::poll(&connection, 1, 0) == 0);
  listener = Error{ENOENT, "closed"};
  CHECK(wait_for([&] { return ::poll(&connection, 1, 0) == 1; }));
  mounted.stop();
  watch.reset();
}

TEST_CASE("fs: a lack of descriptors is not taken for an unmount") {
  NEEDS_FUSE();
  if (::geteuid() != 0) skip("not root");
  Mounted mounted;
  std::atomic<bool> gone{false};
  std::string why;
  std::unique_ptr<MountWatch> watch;
  mounted.control([&] {
    watch = std::make_unique<MountWatch>(
        *mounted.session->device(), mounted.loop, [&] { gone = true; },
        [&](std::string_view reason) { why = reason; });
  });
  char other[] = "/tmp/rocefs-fs-test.XXXXXX";
  REQUIRE(::mkdtemp(other));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK(::open("/", O_RDONLY | O_CLOEXEC) == -1);
  bool changed = ::mount("none", other, "tmpfs", 0, nullptr) == 0;
  for (int i = 0; i < 3; ++i) mounted.control([] {});  // the loop has looked by then
  ::setrlimit(RLIMIT_NOFILE, &limit);
  CHECK(changed);
  CHECK(!gone);
  CHECK(why.empty());
  ::umount2(other, MNT_DETACH);
  ::rmdir(other);
  REQUIRE(::umount2(mounted.path.c_str(), MNT_DETACH) == 0);
  CHECK(wait_for([&] { return gone.load(); }));
  mounted.stop();
  watch.reset();
}

TEST_CASE("fs: a session that ends while creating its socket leaves no process behind") {
  NEEDS_FUSE();
  Mounted mounted;
  mounted.control([&] {
    mounted.session->listen_at(kPath, [](Result<Fd>) {});
    mounted.loop.stop();
  });
  mounted.stop();
  mounted.session.reset();
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}
