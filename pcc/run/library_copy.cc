#include "pcc/run/library_copy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {
namespace {

constexpr size_t kMaxCopied = 1 << 20;

Error failure(const std::string& file, int code) {
  return errorf(ENOEXEC, "{}: {}", file, std::strerror(code));
}

// Copy in memory, under the file's own name for readers of /proc/PID/maps.
Result<Fd> copy_of(const std::string& file) {
  Fd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!from || ::fstat(from.get(), &status) != 0) return failure(file, errno);
  if (!S_ISREG(status.st_mode)) return errorf(ENOEXEC, "{}: not a regular file", file);
  std::string name = file.substr(file.rfind('/') + 1).substr(0, 200);
  Fd copy(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!copy) return failure(file, errno);
  for (;;) {
    ssize_t copied = ::sendfile(copy.get(), from.get(), nullptr, kMaxCopied);
    if (copied == 0) return copy;
    if (copied < 0 && errno != EINTR) return failure(file, errno);
  }
}

// Path of the descriptor that the linker has not seen yet: it would return the image loaded under a
// known name, although the descriptor is another one now.
std::string fresh_path(int descriptor) {
  std::string directory = "/proc/self/fd/";
  for (;; directory += '/') {
    std::string path = directory + std::to_string(descriptor);
    void* seen = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!seen) return path;
    ::dlclose(seen);
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

Result<void*> open_library_copy(const std::string& file) {
  Result<Fd> copy = copy_of(file);
  if (!copy) return copy.error();
  std::string path = fresh_path(copy->get());
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ENOEXEC, replaced(::dlerror(), path, file)};
  return library;
}

}  // namespace rocefs
