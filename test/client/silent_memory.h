// Memory that never answers: pages whose faults nobody serves, and a file that is never read.
#pragma once

#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "test/client/hostile.h"

namespace rocefs::test {

constexpr size_t kMegabyte = 1 << 20;

// Memory whose missing pages are never served.
class UnservedFaults {
 public:
  bool open(const Pages& pages) {
    fd_ = Fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    uffdio_api api{};
    api.api = UFFD_API;
    uffdio_register range{};
    range.range = {reinterpret_cast<uint64_t>(pages.data()), pages.size()};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    return fd_ && ::ioctl(fd_.get(), UFFDIO_API, &api) == 0 &&
           ::ioctl(fd_.get(), UFFDIO_REGISTER, &range) == 0;
  }
  // Whoever waits goes on.
  void close() { fd_.reset(); }
  // From now on who touches them waits.
  static void drop(const Pages& pages) { ::madvise(pages.data(), pages.size(), MADV_DONTNEED); }

 private:
  Fd fd_;
};

// A mounted file of a FUSE server that answers no read.
class SilentFile {
 public:
  static constexpr uint64_t kSize = kMegabyte;

  ~SilentFile() { end(); }
  bool open() {
    device_ = Fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    char name[] = "/tmp/hostile_silent_XXXXXX";
    if (!device_ || !::mkdtemp(name)) return false;
    directory_ = name;
    std::string options =
        "fd=" + std::to_string(device_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    mounted_ = ::mount("silent", name, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    if (!mounted_) return false;
    server_ = std::thread([this] { serve(); });
    file_ = Fd(::open((directory_ + "/file").c_str(), O_RDONLY | O_CLOEXEC));
    return bool(file_);
  }
  int fd() const { return file_.get(); }
  bool was_read() const { return reads_.load() > 0; }
  // Whoever waits is told that it failed.
  void end() {
    if (mounted_) ::umount2(directory_.c_str(), MNT_FORCE);
    file_.reset();
    if (std::exchange(mounted_, false)) ::umount2(directory_.c_str(), MNT_DETACH);
    if (server_.joinable()) server_.join();
    if (!directory_.empty()) ::rmdir(directory_.c_str());
    directory_.clear();
  }

 private:
  template <class T>
  void answer(uint64_t unique, const T& said) {
    struct {
      fuse_out_header header;
      T said;
    } out{{sizeof out, 0, unique}, said};
    (void)!::write(device_.get(), &out, sizeof out);
  }
  void refuse(uint64_t unique) {
    fuse_out_header out{sizeof out, -ENOSYS, unique};
    (void)!::write(device_.get(), &out, sizeof out);
  }
  static fuse_attr attributes(uint64_t inode) {
    fuse_attr attr{};
    attr.ino = inode;
    attr.mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    attr.nlink = 1;
    attr.size = inode == FUSE_ROOT_ID ? 0 : kSize;
    return attr;
  }
  void serve() {
    alignas(fuse_in_header) static char buffer[1 << 18];
    for (;;) {
      ssize_t got = ::read(device_.get(), buffer, sizeof buffer);
      if (got < 0 && errno == ENODEV) return;
      if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
      const auto* in = reinterpret_cast<const fuse_in_header*>(buffer);
      switch (in->opcode) {
        case FUSE_INIT: {
          fuse_init_out out{};
          out.major = 7;
          out.minor = 31;
          out.max_write = 4096;
          answer(in->unique, out);
          break;
        }
        case FUSE_LOOKUP: {
          fuse_entry_out out{};
          out.nodeid = 2;
          out.entry_valid = out.attr_valid = 1000;
          out.attr = attributes(2);
          answer(in->unique, out);
          break;
        }
        case FUSE_GETATTR: {
          fuse_attr_out out{};
          out.attr_valid = 1000;
          out.attr = attributes(in->nodeid);
          answer(in->unique, out);
          break;
        }
        case FUSE_OPEN:
          answer(in->unique, fuse_open_out{});
          break;
        case FUSE_READ:
          ++reads_;
          break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
          break;
        default:
          refuse(in->unique);
      }
    }
  }

  Fd device_, file_;
  std::string directory_;
  bool mounted_ = false;
  std::atomic<int> reads_{0};
  std::thread server_;
};

}  // namespace rocefs::test
