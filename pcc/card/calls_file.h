// pcc/calls: each call of an algorithm as CSV, with what it saw and did, while pcc/trace_calls
// is 1.
//
// An open file begins with the oldest call that is kept, and goes on as calls come: a read at the
// end is empty, a later one has what is new, as of a file that grows. Reads are in sequence, ESPIPE
// otherwise. Each makes no more text than it returns. Control thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/takeover/shared_memory.h"
#include "core/tree/file.h"

namespace rocefs {

class CallsFile final : public File {
 public:
  using Page = std::function<std::shared_ptr<SharedMemory>()>;
  using NameOf = std::function<std::string_view(unsigned slot)>;
  // `page` returns the control page of the present or last owner of the windows; null: none yet.
  CallsFile(Page page, NameOf name_of) : page_(std::move(page)), name_of_(std::move(name_of)) {}

  bool readable() const override { return true; }
  bool writable() const override { return false; }
  uint64_t size() const override { return kPageSize; }
  bool has_end() const override { return false; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;
  FileDoc doc() const override;

 private:
  class Open;
  const Page page_;
  const NameOf name_of_;
};

}  // namespace rocefs
