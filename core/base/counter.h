// Counter: written by one thread, read by any. Tables of counters say once where each is shown.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocefs {

class Counter {
 public:
  // Owner's thread only: a plain load and store, no locked instruction.
  void add(uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  // Any thread, for what happens seldom.
  void add_shared(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Row of a counter: the file below its directory, the member of `Set`, and the event that counts.
// The file shows the count divided by `divisor` (4 where the standard counts 4-octet words).
template <class Set>
struct CounterRow {
  std::string_view path;
  Counter Set::*member;
  std::string_view doc;
  uint64_t divisor = 1;
};

// Owner's thread.
template <class Set, size_t N>
void zero_counters(const CounterRow<Set> (&rows)[N], Set& counters) {
  for (const CounterRow<Set>& row : rows) (counters.*row.member).set(0);
}

}  // namespace rocefs
