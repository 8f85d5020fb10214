// ArrivedPsns: the PSNs of responses that came ahead of their turn, a bit for each. Memory grows
// with the distance ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rocefs {

class ArrivedPsns {
 public:
  // PSNs from the one whose turn it is on that have a bit; none beyond has arrived.
  uint64_t size() const { return words_.size() * 64; }
  // `turn` is the PSN whose turn it is: none before it is in the set.
  bool has(uint64_t psn, uint64_t turn) const {
    return psn - turn < size() && (word(psn) >> psn % 64 & 1);
  }
  void add(uint64_t psn, uint64_t turn) {
    if (psn - turn >= size()) grow(psn - turn + 1, turn);
    word(psn) |= uint64_t{1} << psn % 64;
  }
  // Removes a PSN that is in the set.
  void remove(uint64_t psn) { word(psn) &= ~(uint64_t{1} << psn % 64); }
  void clear() { words_.clear(); }

 private:
  uint64_t& word(uint64_t psn) { return words_[psn / 64 & (words_.size() - 1)]; }
  const uint64_t& word(uint64_t psn) const { return words_[psn / 64 & (words_.size() - 1)]; }
  void grow(uint64_t room, uint64_t turn) {
    ArrivedPsns larger;
    size_t words = std::max<size_t>(16, words_.size());
    while (words * 64 < room) words *= 2;
    larger.words_.resize(words);
    for (uint64_t psn = turn; psn != turn + size(); ++psn) {
      if (has(psn, turn)) larger.add(psn, turn);
    }
    words_.swap(larger.words_);
  }

  std::vector<uint64_t> words_;  // empty, or a power of two
};

}  // namespace rocefs
