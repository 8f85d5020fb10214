// Slabs: memory for many small objects of one kind, given out one by one and freed all at once.
// Large slabs ask the kernel for huge pages: where objects lie all over memory, half of a cache
// miss is the search for the page.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace rocefs {

template <class T>
class Slabs {
 public:
  Slabs() = default;
  ~Slabs() {
    for (Slab& slab : slabs_) std::destroy_n(slab.first(), slab.made);
  }
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Makes an object that lives as long as the slabs. Slabs double in size up to a huge page.
  template <class... Args>
  T& make(Args&&... args) {
    if (slabs_.empty() || slabs_.back().made == slabs_.back().size) grow();
    Slab& slab = slabs_.back();
    T* made = new (slab.first() + slab.made) T(std::forward<Args>(args)...);
    ++slab.made;
    return *made;
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kFirst = 64;
  struct Free {
    size_t alignment = 0;
    void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };
  struct Slab {
    std::unique_ptr<void, Free> memory;
    size_t size = 0, made = 0;  // objects
    T* first() const { return static_cast<T*>(memory.get()); }
  };

  void grow() {
    const size_t most = std::max(kFirst, kHugePage / sizeof(T));
    const size_t size = slabs_.empty() ? kFirst : std::min(slabs_.back().size * 2, most);
    const bool huge = size == most;
    const size_t alignment = huge ? kHugePage : alignof(T);
    const size_t bytes =
        huge ? (size * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage : size * sizeof(T);
    Slab slab{{::operator new (bytes, std::align_val_t{alignment}), Free{alignment}}, size, 0};
    if (huge) (void)::madvise(slab.memory.get(), bytes, MADV_HUGEPAGE);
    slabs_.push_back(std::move(slab));
  }

  std::vector<Slab> slabs_;
};

}  // namespace rocefs
