// CoreGate: lets the first packet core have the whole engine to itself for a moment. The other
// cores are inside while they work and outside while they sleep; they leave between two events when
// the gate is shut, and wait until it is open again.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace rocefs {

class CoreGate {
 public:
  // For cores 1 to `others`.
  explicit CoreGate(size_t others)
      : others_(others), inside_(std::make_unique<Inside[]>(others + 1)) {}

  // Core `number`: waits while the gate is shut.
  void enter(size_t number) {
    while (true) {
      inside_[number].value.store(1, std::memory_order_seq_cst);
      if (shut_.load(std::memory_order_seq_cst) == 0) return;
      leave(number);
      shut_.wait(1, std::memory_order_seq_cst);
    }
  }
  void leave(size_t number) {
    inside_[number].value.store(0, std::memory_order_seq_cst);
    if (shut_.load(std::memory_order_seq_cst) != 0) inside_[number].value.notify_one();
  }
  // A core that is inside leaves soon if this is true.
  bool is_shut() const { return shut_.load(std::memory_order_relaxed) != 0; }

  // The first core. Returns when no other core is inside: none works for longer than an event or a
  // poll before it looks, unless the kernel takes its CPU.
  void shut() {
    shut_.store(1, std::memory_order_seq_cst);
    for (size_t i = 1; i <= others_; ++i) inside_[i].value.wait(1, std::memory_order_seq_cst);
  }
  void open() {
    shut_.store(0, std::memory_order_seq_cst);
    shut_.notify_all();
  }

 private:
  struct alignas(64) Inside {
    std::atomic<int> value{0};
  };

  const size_t others_;
  const std::unique_ptr<Inside[]> inside_;
  alignas(64) std::atomic<int> shut_{0};
};

}  // namespace rocefs
