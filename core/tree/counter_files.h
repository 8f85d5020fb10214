// Files of a counter table, one read-only file per row.
#pragma once

#include <string>

#include "core/base/counter.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"

namespace rocefs {

class CounterFile : public Attribute {
 public:
  // `counter` outlives the file.
  CounterFile(Counter& counter, uint64_t divisor, std::string_view doc)
      : counter_(counter), divisor_(divisor), doc_(doc) {}
  bool readable() const override { return true; }
  bool writable() const override { return false; }
  FileDoc doc() const override { return {"counter", {}, {}, doc_}; }
  Result<std::string> show() final { return fmt::format("{}\n", value()); }
  // The value that the file shows.
  virtual uint64_t value() { return counter_.get() / divisor_; }
  // For the counter's owner, who may clear it on its own thread.
  Counter& counter() { return counter_; }
  // Control thread: called when the counter was cleared.
  virtual void cleared() {}

 private:
  Counter& counter_;
  const uint64_t divisor_;
  const std::string_view doc_;
};

// `counters` outlives the tree.
template <class Set>
void add_counter_file(Tree& tree, const std::string& directory, const CounterRow<Set>& row,
                      Set& counters) {
  tree.add_file(fmt::format("{}/{}", directory, row.path),
                std::make_shared<CounterFile>(counters.*row.member, row.divisor, row.doc));
}
template <class Set, size_t N>
void add_counter_files(Tree& tree, const std::string& directory, const CounterRow<Set> (&rows)[N],
                       Set& counters) {
  for (const CounterRow<Set>& row : rows) add_counter_file(tree, directory, row, counters);
}

}  // namespace rocefs
