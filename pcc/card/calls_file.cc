#include "pcc/card/calls_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <iterator>

#include "pcc/api/register_access.h"
#include "pcc/card/calls_text.h"
#include "rdma/uapi/registers.h"

namespace rocefs {
namespace {

constexpr uint64_t kKept = ROCEFS_CALL_ENTRIES - 1;  // one may be about to be overwritten

}  // namespace

class CallsFile::Open final : public OpenFile {
 public:
  explicit Open(std::shared_ptr<File> file)
      : file_(std::move(file)), text_(fmt::format("{}\n", kCallsHeader)), page_(calls().page_()) {}

  void read(uint64_t offset, size_t size, const OperationPtr&,
            Answer<std::string> answer) override {
    if (file_->removed()) return answer(Error{ENODEV, "the device has left"});
    if (offset != position_) return answer(Error{ESPIPE, "calls are read in sequence"});
    while (text_.size() < size && add_next()) {
    }
    std::string piece = text_.substr(0, size);
    text_.erase(0, piece.size());
    position_ += piece.size();
    answer(std::move(piece));
  }
  void write(std::string_view, const OperationPtr&, Answer<size_t> answer) override {
    answer(Error{EBADF, "not writable"});
  }
  short poll(Task) override { return POLLIN | POLLOUT; }

 private:
  const CallsFile& calls() const { return static_cast<const CallsFile&>(*file_); }

  // Adds a line; false at the end. A run that has ended is read to its end before the next begins.
  bool add_next() {
    if (!page_) page_ = calls().page_();
    if (!page_) return false;
    auto& page = *page_->at<rocefs_control_page>(0);
    uint64_t written = load_announced(page.calls_traced);
    if (next_ >= written) {
      std::shared_ptr<SharedMemory> newest = calls().page_();
      if (newest == page_ || !newest) return false;
      page_ = std::move(newest);
      next_ = 0;
      return true;
    }
    if (written - next_ > kKept) return skip_to(written - kKept);
    rocefs_call_entry entry;
    rocefs_call_entry& place = page.calls[next_ % ROCEFS_CALL_ENTRIES];
    for (size_t i = 0; i < std::size(entry.words); ++i)
      entry.words[i] = load_announced(place.words[i]);
    written = load_announced(page.calls_traced);
    if (written - next_ > kKept) return skip_to(written - kKept);
    ++next_;
    if (entry.call.kind == ROCEFS_QP_CALL) {
      add_line(text_, entry.call, calls().name_of_(entry.call.slot));
    } else {
      add_line(text_, entry.event);
    }
    return true;
  }
  // The owner of the page may have written any number there.
  bool skip_to(uint64_t oldest) {
    if (next_ > 0) text_ += lost_lines(oldest - next_);
    next_ = oldest;
    return true;
  }

  const std::shared_ptr<File> file_;
  std::string text_;  // made and not read yet
  std::shared_ptr<SharedMemory> page_;
  uint64_t next_ = 0;  // entry
  uint64_t position_ = 0;
};

Result<std::unique_ptr<OpenFile>> CallsFile::open(const std::shared_ptr<File>& self,
                                                  const Caller&) {
  return std::unique_ptr<OpenFile>(std::make_unique<Open>(self));
}

FileDoc CallsFile::doc() const {
  return {.kind = "value",
          .values = "",
          .initial = "",
          .text =
              "the newest 131072 calls of the algorithm and events that it took since PCC became "
              "active last, as CSV, while trace_calls is 1; a file that is kept open goes on "
              "where it ended"};
}

}  // namespace rocefs
