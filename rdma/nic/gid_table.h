// GidTable: the GIDs of a port by index, as ib_core keeps them: one for each address of the port's
// interface. An address that goes leaves its place empty, and a new one takes the first empty
// place. Queue pairs that use a GID keep the address. Core thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rdma/wire/ip.h"

namespace rocefs {

class GidTable {
 public:
  static constexpr size_t kSize = 16;
  using Entries = std::array<Ip, kSize>;  // all zero: empty

  explicit GidTable(std::span<const Ip> first) {
    std::copy(first.begin(), first.end(), entries_.begin());
    note_entries();
  }

  const Entries& entries() const { return entries_; }
  // Null: the entry is empty, or there is none.
  const Ip* at(size_t index) const {
    return index < kSize && entries_[index] != Ip{} ? &entries_[index] : nullptr;
  }
  std::optional<size_t> index_of(const Ip& address) const {
    auto it = std::find(entries_.begin(), entries_.end(), address);
    if (address == Ip{} || it == entries_.end()) return std::nullopt;
    return static_cast<size_t>(it - entries_.begin());
  }
  // Each packet of a cable between two NICs asks: most addresses differ in their last octet.
  bool has(const Ip& address) const {
    return (marks_ & mark_of(address)) != 0 && index_of(address).has_value();
  }

  // False if it is there already, or the table is full.
  bool add(const Ip& address) {
    auto free = std::find(entries_.begin(), entries_.end(), Ip{});
    if (has(address) || free == entries_.end()) return false;
    *free = address;
    note_entries();
    return true;
  }
  // False if it is not there.
  bool remove(const Ip& address) {
    std::optional<size_t> index = index_of(address);
    if (index) entries_[*index] = {};
    note_entries();
    return index.has_value();
  }

 private:
  static uint64_t mark_of(const Ip& address) { return uint64_t{1} << address.back() % 64; }
  void note_entries() {
    marks_ = 0;
    for (const Ip& entry : entries_) marks_ |= entry == Ip{} ? 0 : mark_of(entry);
  }

  Entries entries_{};
  uint64_t marks_ = 0;  // of all entries
};

}  // namespace rocefs
