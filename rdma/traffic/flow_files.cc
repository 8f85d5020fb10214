#include "rdma/traffic/flow_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/traffic/flow_plan.h"

namespace rocefs {
namespace {

// A copy between a whole file and memory, several slots at a time. The first error is the answer;
// the copy lives until its last order is answered.
class FileCopy : public std::enable_shared_from_this<FileCopy> {
 public:
  FileCopy(CallerFilePtr file, std::shared_ptr<LocalMemory> memory)
      : file_(std::move(file)), memory_(std::move(memory)) {}

  void read(Answer<void> answer) {
    answer_ = std::move(answer);
    fill(&FileCopy::read_into);
  }
  void write(Answer<void> answer) {
    answer_ = std::move(answer);
    file_->truncate([self = shared_from_this()](Result<uint64_t> truncated) {
      if (!truncated) return self->end(truncated.error());
      self->fill(&FileCopy::write_from);
    });
  }

 private:
  using Step = void (FileCopy::*)(size_t slot, uint64_t at, size_t size);

  void fill(Step step) {
    if (memory_->bytes().empty()) return end({});
    for (size_t slot = 0; slot < CallerFile::kSlots; ++slot) next(slot, step);
  }
  void next(size_t slot, Step step) {
    size_t size = std::min<uint64_t>(memory_->bytes().size() - begun_, CallerFile::kSlot);
    if (size == 0 || !answer_) return;
    uint64_t at = begun_;
    begun_ += size;
    (this->*step)(slot, at, size);
  }
  void read_into(size_t slot, uint64_t at, size_t size) {
    auto take = [self = shared_from_this(), slot, at, size](Result<uint64_t> got) {
      if (!got) return self->end(got.error());
      if (*got != size) {
        return self->end(errorf(EIO, "{}: became shorter while it was read", self->file_->path()));
      }
      std::memcpy(self->memory_->bytes().data() + at, self->file_->slot(slot), size);
      self->moved(slot, size, &FileCopy::read_into);
    };
    file_->read(slot, at, size, std::move(take));
  }
  void write_from(size_t slot, uint64_t at, size_t size) {
    std::memcpy(file_->slot(slot), memory_->bytes().data() + at, size);
    put(slot, at, 0, size);
  }
  // A disk that takes a part of a write gives the reason when the rest is written.
  void put(size_t slot, uint64_t at, size_t skip, size_t size) {
    auto take = [self = shared_from_this(), slot, at, skip, size](Result<uint64_t> got) {
      if (!got) return self->end(got.error());
      size_t all = skip + static_cast<size_t>(*got);
      if (*got == 0 || all > size)
        return self->end(errorf(EIO, "{}: {}", self->file_->path(), std::strerror(EIO)));
      if (all < size) return self->put(slot, at, all, size);
      self->moved(slot, size, &FileCopy::write_from);
    };
    file_->write(slot, at, skip, size - skip, std::move(take));
  }
  void moved(size_t slot, size_t size, Step step) {
    moved_ += size;
    if (moved_ == memory_->bytes().size()) return end({});
    next(slot, step);
  }
  void end(Result<void> result) {
    if (Answer<void> answer = std::exchange(answer_, nullptr)) answer(std::move(result));
  }

  CallerFilePtr file_;
  std::shared_ptr<LocalMemory> memory_;
  Answer<void> answer_;
  uint64_t begun_ = 0, moved_ = 0;
};

void read_all(const CallerFilePtr& file, Answer<std::shared_ptr<LocalMemory>> answer) {
  std::shared_ptr<LocalMemory> memory = LocalMemory::create(file->size());
  if (!memory) {
    return answer(errorf(ENOMEM, "{}: no memory for {} bytes", file->path(), file->size()));
  }
  std::make_shared<FileCopy>(file, memory)
      ->read([memory, answer = std::move(answer)](Result<void> read) mutable {
        if (!read) return answer(read.error());
        answer(std::move(memory));
      });
}

}  // namespace

void read_input(const CallerFilePtr& file, Answer<std::shared_ptr<LocalMemory>> answer) {
  if (file->size() > kMaxFlowMemory) {
    return answer(
        errorf(EFBIG, "{}: {} bytes, more than {}", file->path(), file->size(), kMaxFlowMemory));
  }
  if (file->size() > 0) return read_all(file, std::move(answer));
  // A file that cannot tell its size, as in /proc, would pass for an empty one.
  file->read(0, 0, 1, [file, answer = std::move(answer)](Result<uint64_t> got) mutable {
    if (got && *got > 0) {
      return answer(
          errorf(EINVAL, "{}: says that it is 0 bytes long, and is longer", file->path()));
    }
    read_all(file, std::move(answer));
  });
}

void write_output(const CallerFilePtr& file, std::shared_ptr<LocalMemory> bytes,
                  Answer<void> answer) {
  std::make_shared<FileCopy>(file, std::move(bytes))
      ->write([file, answer = std::move(answer)](Result<void> written) mutable {
        file->close([written, answer = std::move(answer)](Result<uint64_t> closed) mutable {
          if (written && !closed) return answer(closed.error());
          answer(std::move(written));
        });
      });
}

}  // namespace rocefs
