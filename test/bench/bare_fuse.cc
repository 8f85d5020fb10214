#include "test/bench/bare_fuse.h"

#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "test/bench/bench.h"

namespace rocefs::bench {
namespace {

constexpr uint64_t kRoot = FUSE_ROOT_ID, kFile = 2;
constexpr uint64_t kLong =
    3600;  // seconds the kernel may keep names and attributes, as a mount says

fuse_attr attributes(uint64_t ino) {
  fuse_attr attr{};
  attr.ino = ino;
  attr.mode = ino == kRoot ? S_IFDIR | 0755 : S_IFREG | 0644;
  attr.nlink = ino == kRoot ? 2 : 1;
  attr.size = attr.blksize = 4096;
  return attr;
}

struct Server {
  int descriptor;
  alignas(8) char request[256 * 1024] = {};

  const fuse_in_header& header() const { return *reinterpret_cast<const fuse_in_header*>(request); }
  template <class Body>
  const Body& body() const {
    return *reinterpret_cast<const Body*>(request + sizeof(fuse_in_header));
  }

  void answer(int code, const void* bytes = nullptr, size_t size = 0) {
    fuse_out_header out{static_cast<uint32_t>(sizeof out + size), code, header().unique};
    iovec parts[] = {{&out, sizeof out}, {const_cast<void*>(bytes), size}};
    (void)!::writev(descriptor, parts, size ? 2 : 1);
  }
  template <class Body>
  void answer_with(const Body& body) {
    answer(0, &body, sizeof body);
  }

  void serve() {
    switch (header().opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = FUSE_KERNEL_MINOR_VERSION;
        out.max_write = 128 * 1024;
        return answer_with(out);
      }
      case FUSE_LOOKUP: {
        if (std::string_view(&body<char>()) != "file") return answer(-ENOENT);
        fuse_entry_out out{};
        out.nodeid = kFile;
        out.entry_valid = out.attr_valid = kLong;
        out.attr = attributes(kFile);
        return answer_with(out);
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = kLong;
        out.attr = attributes(header().nodeid);
        return answer_with(out);
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        out.open_flags = FOPEN_DIRECT_IO;
        return answer_with(out);
      }
      case FUSE_READ:
        return body<fuse_read_in>().offset == 0 ? answer(0, "65536\n", 6) : answer(0);
      case FUSE_RELEASE:
        return answer(0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return answer(-ENOSYS);
    }
  }

  // Until it is unmounted.
  void run() {
    for (;;) {
      ssize_t got = ::read(descriptor, request, sizeof request);
      if (got > 0) {
        serve();
      } else if (errno != EINTR && errno != ENOENT) {
        return;
      }
    }
  }
};

const fuse_lowlevel_ops kNone{};  // libfuse only mounts

}  // namespace

BareFuse::BareFuse(int cpu) {
  char name[] = "/tmp/rocefs-bare.XXXXXX";
  directory_ = ::mkdtemp(name);
  char program[] = "bare", option[] = "-o", options[] = "default_permissions";
  char* words[] = {program, option, options};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  session_ = fuse_session_new(&arguments, &kNone, sizeof kNone, nullptr);
  if (!session_ || fuse_session_mount(session_, directory_.c_str()) != 0) {
    fmt::print(stderr, "skipped: no bare FUSE server on {}: {}\n", directory_,
               std::strerror(errno));
    return;
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    pin(cpu);
    Server server{fuse_session_fd(session_)};
    server.run();
    ::_exit(0);
  }
}

BareFuse::~BareFuse() {
  if (session_) {
    fuse_session_unmount(session_);
    fuse_session_destroy(session_);
  }
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::rmdir(directory_.c_str());
}

}  // namespace rocefs::bench
