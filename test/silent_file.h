// Memory that never answers: a mapped file that is never read.
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "core/base/fd.h"

namespace rocefs::test {

// A mounted file of a FUSE server that answers no read. The server is a separate process, which
// ends with this one: a wait that SIGKILL cannot end is over then.
class SilentFile {
 public:
  static constexpr uint64_t kSize = 1 << 20;

  SilentFile() = default;
  SilentFile(const SilentFile&) = delete;
  ~SilentFile() { end(); }
  // False where it cannot be mounted: that needs root.
  bool open() {
    Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    char name[] = "/tmp/silent_file_XXXXXX";
    if (::geteuid() != 0 || !device || !::mkdtemp(name)) return false;
    directory_ = name;
    void* shared =
        ::mmap(nullptr, sizeof *reads_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return false;
    reads_ = new (shared) std::atomic<int>(0);
    std::string options =
        "fd=" + std::to_string(device.get()) + ",rootmode=40000,user_id=0,group_id=0";
    mounted_ = ::mount("silent", name, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    if (!mounted_) return false;
    server_ = ::fork();
    if (server_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      // Drops all inherited descriptors.
      constexpr int kDevice = 3;
      if (::dup2(device.get(), kDevice) < 0 || ::close_range(kDevice + 1, ~0u, 0) != 0) ::_exit(1);
      serve(kDevice);
      ::_exit(0);
    }
    device.reset();
    file_ = Fd(server_ > 0 ? ::open((directory_ + "/file").c_str(), O_RDONLY | O_CLOEXEC) : -1);
    return bool(file_);
  }
  int fd() const { return file_.get(); }
  bool was_read() const { return reads_->load() > 0; }
  // From now on a thread that accesses these pages, which may be written, blocks.
  bool cover(void* pages, size_t size) const {
    return ::mmap(pages, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_.get(), 0) ==
           pages;
  }
  // Fails all blocked accesses.
  void end() {
    if (mounted_) ::umount2(directory_.c_str(), MNT_FORCE);
    file_.reset();
    if (std::exchange(mounted_, false)) ::umount2(directory_.c_str(), MNT_DETACH);
    if (server_ > 0) {
      ::kill(server_, SIGKILL);
      ::waitpid(server_, nullptr, 0);
    }
    server_ = 0;
    if (!directory_.empty()) ::rmdir(directory_.c_str());
    directory_.clear();
  }

 private:
  template <class T>
  static void answer(int device, uint64_t unique, const T& said) {
    struct {
      fuse_out_header header;
      T said;
    } out{{sizeof out, 0, unique}, said};
    (void)!::write(device, &out, sizeof out);
  }
  static void refuse(int device, uint64_t unique) {
    fuse_out_header out{sizeof out, -ENOSYS, unique};
    (void)!::write(device, &out, sizeof out);
  }
  static fuse_attr attributes(uint64_t inode) {
    fuse_attr attr{};
    attr.ino = inode;
    attr.mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    attr.nlink = 1;
    attr.size = inode == FUSE_ROOT_ID ? 0 : kSize;
    return attr;
  }
  void serve(int device) {
    alignas(fuse_in_header) static char buffer[1 << 18];
    for (;;) {
      ssize_t got = ::read(device, buffer, sizeof buffer);
      if (got < 0 && errno == ENODEV) return;
      if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
      const auto* in = reinterpret_cast<const fuse_in_header*>(buffer);
      switch (in->opcode) {
        case FUSE_INIT: {
          fuse_init_out out{};
          out.major = 7;
          out.minor = 31;
          out.max_write = 4096;
          answer(device, in->unique, out);
          break;
        }
        case FUSE_LOOKUP: {
          fuse_entry_out out{};
          out.nodeid = 2;
          out.entry_valid = out.attr_valid = 1000;
          out.attr = attributes(2);
          answer(device, in->unique, out);
          break;
        }
        case FUSE_GETATTR: {
          fuse_attr_out out{};
          out.attr_valid = 1000;
          out.attr = attributes(in->nodeid);
          answer(device, in->unique, out);
          break;
        }
        case FUSE_OPEN:
          answer(device, in->unique, fuse_open_out{});
          break;
        case FUSE_READ:
          ++*reads_;
          break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
          break;
        default:
          refuse(device, in->unique);
      }
    }
  }

  Fd file_;
  std::string directory_;
  bool mounted_ = false;
  pid_t server_ = 0;
  std::atomic<int>* reads_ = nullptr;  // shared with the server
};

}  // namespace rocefs::test
