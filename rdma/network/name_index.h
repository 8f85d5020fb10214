// NameIndex: objects by name.
#pragma once

#include <string_view>
#include <unordered_map>

namespace rocefs {

// An object and its name() outlive the index and do not move.
template <class T>
class NameIndex {
 public:
  // The first of equal names stays.
  void add(T& one) { all_.try_emplace(one.name(), &one); }
  // Null if there is none.
  T* find(std::string_view name) const {
    auto it = all_.find(name);
    return it == all_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<std::string_view, T*> all_;
};

}  // namespace rocefs
