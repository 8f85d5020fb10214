#include "pcc/run/library_copy.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/fd.h"

namespace rocefs {
namespace {

constexpr size_t kMaxCopied = 1 << 20;

Error failure(const std::string& file, int code) {
  return errorf(ENOEXEC, "{}: {}", file, std::strerror(code));
}

extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

std::string_view machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_386:
      return "x86, 32 bit";
    case EM_AARCH64:
      return "AArch64";
    case EM_ARM:
      return "ARM, 32 bit";
    case EM_RISCV:
      return "RISC-V";
    default:
      return "another machine";
  }
}

// Compares the file's header with the program's own: the linker's words for a library of another
// machine are that it cannot be found.
Result<void> check_machine(const std::string& file, int descriptor) {
  ElfW(Ehdr) header;
  ssize_t got = ::pread(descriptor, &header, sizeof header, 0);
  bool elf = got == sizeof header && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  if (!elf) return errorf(ENOEXEC, "{}: not an ELF file", file);
  const ElfW(Ehdr)& own = __ehdr_start;
  bool same = header.e_machine == own.e_machine &&
              header.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
              header.e_ident[EI_DATA] == own.e_ident[EI_DATA];
  if (!same) {
    return errorf(ENOEXEC, "{}: built for {}, where {} is wanted", file,
                  machine_name(header.e_machine), machine_name(own.e_machine));
  }
  if (header.e_type != ET_DYN) return errorf(ENOEXEC, "{}: not a shared library", file);
  return {};
}

// Path of the descriptor that the linker has not seen yet: it would return the image loaded under a
// known name, although the descriptor is another one now.
// The path has the process's number: `self` is another process to a debugger, which reads the
// library by it.
std::string fresh_path(int descriptor) {
  std::string directory = "/proc/" + std::to_string(::getpid()) + "/fd/";
  for (;; directory += '/') {
    std::string path = directory + std::to_string(descriptor);
    void* seen = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!seen) return path;
    ::dlclose(seen);
  }
}

// Names the library as its file, for debuggers that come later: the descriptor is closed by then.
// The linker has allocated the name that it has, and frees the new one with the library.
void set_name(void* library, const std::string& file) {
  link_map* map = nullptr;
  char* name = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? ::strdup(file.c_str()) : nullptr;
  if (name) std::free(std::exchange(map->l_name, name));
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

}  // namespace

// Named as the file for readers of /proc/PID/maps.
Result<LibraryCopy> LibraryCopy::of(const std::string& file) {
  Fd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!from || ::fstat(from.get(), &status) != 0) return failure(file, errno);
  if (!S_ISREG(status.st_mode)) return errorf(ENOEXEC, "{}: not a regular file", file);
  if (Result<void> checked = check_machine(file, from.get()); !checked) return checked.error();
  std::string name = file.substr(file.rfind('/') + 1).substr(0, 200);
  Fd memory(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return failure(file, errno);
  for (;;) {
    ssize_t copied = ::sendfile(memory.get(), from.get(), nullptr, kMaxCopied);
    if (copied == 0) break;
    if (copied < 0 && errno != EINTR) return failure(file, errno);
  }
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return failure(file, errno);
  return LibraryCopy{file, std::move(memory)};
}

Result<void*> open_library(const LibraryCopy& copy) {
  std::string path = fresh_path(copy.memory.get());
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ENOEXEC, replaced(::dlerror(), path, copy.file)};
  set_name(library, copy.file);
  return library;
}

}  // namespace rocefs
