// ClientShares: limits how much of a bounded resource each client may hold to the amount that is
// free. A single client gets half; the n-th finds 1/(n+1) left, so no client can starve the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace rocefs::mad {

class ClientShares {
 public:
  explicit ClientShares(size_t all) : all_(all) {}

  // Returns false, and takes nothing, if the client would hold more than is then free.
  [[nodiscard]] bool take(uint32_t client, size_t amount) {
    size_t free = all_ - taken_;
    if (amount > free || held_by(client) + amount > free) return false;
    held_[client] += amount;
    taken_ += amount;
    return true;
  }
  // Returns all or a part of the client's amount.
  void give_back(uint32_t client, size_t amount) {
    auto at = held_.find(client);
    taken_ -= amount;
    if ((at->second -= amount) == 0) held_.erase(at);
  }
  size_t held_by(uint32_t client) const {
    auto at = held_.find(client);
    return at == held_.end() ? 0 : at->second;
  }
  size_t taken() const { return taken_; }
  void clear() {
    held_.clear();
    taken_ = 0;
  }

 private:
  size_t all_;
  size_t taken_ = 0;
  std::unordered_map<uint32_t, size_t> held_;  // none of 0
};

}  // namespace rocefs::mad
