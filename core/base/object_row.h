// ObjectRow: room for a number of objects side by side, made one by one and destroyed together. The
// address of each is computed, and objects need not be movable.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>

namespace rocefs {

template <class T>
class ObjectRow {
 public:
  explicit ObjectRow(size_t room) : objects_(std::allocator<T>().allocate(room)), room_(room) {}
  ~ObjectRow() {
    std::destroy_n(objects_, made_);
    std::allocator<T>().deallocate(objects_, room_);
  }
  ObjectRow(const ObjectRow&) = delete;
  ObjectRow& operator=(const ObjectRow&) = delete;

  size_t size() const { return made_; }
  T& operator[](size_t index) const { return objects_[index]; }
  // Precondition: there is room.
  template <class... Args>
  T& make(Args&&... args) {
    assert(made_ < room_);
    T* made = new (objects_ + made_) T(std::forward<Args>(args)...);
    ++made_;
    return *made;
  }

 private:
  T* const objects_;
  const size_t room_;
  size_t made_ = 0;
};

}  // namespace rocefs
