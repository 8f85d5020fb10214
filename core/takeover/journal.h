// Journal: memory that a worker leaves to its successor. A memfd that outlives the process, changed
// by transactions: staged changes become visible together in one store, the commit, however the
// process dies.
//
// A redo record: stage() appends each change, commit() sets a flag and then copies the changes to
// their places. Before the flag the state is unchanged; after it recover() repeats the copies,
// which are idempotent.
//
// One thread at a time, in one process at a time. The memory is zeroed at first.
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

  // Shared by this process and its children. `record_size` bytes hold the largest transaction;
  // unused pages cost nothing.
  static Result<std::unique_ptr<Journal>> create(size_t state_size, size_t record_size);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The journalled state. `State` is trivially copyable.
  template <class State>
  State& state() const {
    static_assert(std::is_standard_layout_v<State> && std::is_trivially_destructible_v<State>);
    return *static_cast<State*>(state_);
  }

  // Stages `size` bytes of `bytes` for `target`, which lies in the state. A transaction larger than
  // the record is a programming error.
  void stage(void* target, const void* bytes, size_t size);
  template <class T>
  void stage(T& target, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    stage(&target, &value, sizeof value);
  }
  // Runs at the beginning of every commit, to stage further changes.
  void before_commit(std::function<void()> contribute);
  void commit();

  // Completes the commit of a dead process, and discards changes that were only staged. Call it
  // before reading the state.
  void recover();

  // Calls `probe` at each step of a commit; for tests.
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  // Precedes the record; the state follows the record.
  struct Header {
    std::atomic<uint64_t> committed;  // bytes of the record that are to be copied; 0: none
  };
  struct Change {
    uint64_t offset;  // within the state
    uint64_t size;    // the bytes follow, padded to a multiple of 8
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
