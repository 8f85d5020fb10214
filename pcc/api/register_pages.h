// RegisterPages: the register pages of a device, mapped by the owner of its windows.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "rdma/uapi/peer.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class RegisterPages {
 public:
  RegisterPages() = default;
  ~RegisterPages() { reset(); }
  RegisterPages(const RegisterPages&) = delete;
  RegisterPages& operator=(const RegisterPages&) = delete;

  // Replaces an earlier mapping. Returns 0 or an errno; EPROTO if the descriptors are not register
  // pages.
  int map(int signals, int control) {
    reset();
    int error = map(signals, PROT_READ, signals_);
    if (!error) error = map(control, PROT_READ | PROT_WRITE, control_);
    other_version_ = 0;
    if (!error && signals_->version != ROCEFS_REGISTERS_VERSION) {
      other_version_ = signals_->version;
      error = EPROTO;
    }
    if (error) reset();
    return error;
  }
  void reset() {
    unmap(signals_);
    unmap(control_);
  }
  // The version of pages that could not be mapped because of it, else 0.
  uint32_t other_version() const { return other_version_; }
  // Null while nothing is mapped.
  const rocefs_signals_page* signals() const { return signals_; }
  rocefs_control_page* control() const { return control_; }

 private:
  template <class Page>
  static int map(int descriptor, int access, Page*& page) {
    if (int error = rocefs_check_memory(descriptor, sizeof(Page))) return error;
    void* at = ::mmap(nullptr, sizeof(Page), access, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED) return errno;
    page = static_cast<Page*>(at);
    return 0;
  }
  template <class Page>
  static void unmap(Page*& page) {
    if (page) ::munmap(page, sizeof(Page));
    page = nullptr;
  }

  rocefs_signals_page* signals_ = nullptr;
  rocefs_control_page* control_ = nullptr;
  uint32_t other_version_ = 0;
};

}  // namespace rocefs
