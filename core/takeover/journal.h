// Journal: the memory that a worker leaves to the one that takes over from it. It lies in a memfd
// that outlives the process, and changes in transactions: what is staged becomes visible as a whole
// in one store, the commit, however the process dies.
//
// A redo record: stage() writes each change behind the last one, commit() raises a flag and then
// copies the changes to their places. Before the flag nothing has happened; after it recover()
// copies them again, which does no harm to what was copied already.
//
// One thread at a time, in one process at a time. Everything in the memory begins as zero.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

class Journal {
 public:
  // Where a commit may be cut.
  enum class Step { kStaged, kCommitting };
  using Probe = std::function<void(Step)>;

  // Shared by this process and all that it forks. `record_size` bytes hold the largest transaction;
  // pages that are never used cost nothing.
  static Result<std::unique_ptr<Journal>> create(size_t state_size, size_t record_size);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // What is kept. `State` is made of plain data alone.
  template <class State>
  State& state() const {
    static_assert(std::is_standard_layout_v<State> && std::is_trivially_destructible_v<State>);
    return *static_cast<State*>(state_);
  }

  // `size` bytes at `target`, which lies in the state, will be those at `bytes`. Larger
  // transactions than the record can hold are a programming error.
  void stage(void* target, const void* bytes, size_t size);
  template <class T>
  void stage(T& target, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    stage(&target, &value, sizeof value);
  }
  // Runs at the beginning of every commit, to stage what goes with it.
  void before_commit(std::function<void()> contribute);
  void commit();

  // Ends what a dead process had committed, and forgets what it had only staged. To be called
  // before the state is read.
  void recover();

  // Called at each step of a commit; for tests.
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  // At the beginning of the memory; the record follows, then the state.
  struct Header {
    std::atomic<uint64_t> committed;  // bytes of the record that are to be copied; 0: none
  };
  struct Change {
    uint64_t offset;  // in the state
    uint64_t size;    // the bytes follow, and fill up to a multiple of 8
  };

  Journal(void* memory, size_t record_size, size_t size);
  void redo(uint64_t size);
  void probe(Step step) {
    if (probe_) probe_(step);
  }

  Header* header_;
  char* record_;
  void* state_;
  size_t record_size_, size_;
  uint64_t staged_ = 0;
  std::vector<std::function<void()>> contributors_;
  Probe probe_;
};

}  // namespace rocefs
