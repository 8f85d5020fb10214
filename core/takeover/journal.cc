#include "core/takeover/journal.h"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "core/base/fd.h"

namespace rocefs {
namespace {

constexpr size_t kPage = 4096;

size_t rounded_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::create(size_t state_size, size_t record_size) {
  record_size = rounded_up(record_size, kPage);
  size_t size = kPage + record_size + rounded_up(state_size, kPage);
  Fd fd(::memfd_create("rocefs-journal", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return errorf(errno, "journal: {}", std::strerror(errno));
  }
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errorf(errno, "journal: {}", std::strerror(errno));
  return std::unique_ptr<Journal>(new Journal(memory, record_size, size));
}

Journal::Journal(void* memory, size_t record_size, size_t size)
    : header_(static_cast<Header*>(memory)),
      record_(static_cast<char*>(memory) + kPage),
      state_(record_ + record_size),
      record_size_(record_size),
      size_(size) {}

Journal::~Journal() {
  ::munmap(header_, size_);
}

void Journal::before_commit(std::function<void()> contribute) {
  contributors_.push_back(std::move(contribute));
}

void Journal::stage(void* target, const void* bytes, size_t size) {
  Change change{static_cast<uint64_t>(static_cast<char*>(target) - static_cast<char*>(state_)),
                size};
  assert(target >= state_ && kPage + record_size_ + change.offset + size <= size_);
  assert(staged_ + sizeof change + rounded_up(size, 8) <= record_size_);
  std::memcpy(record_ + staged_, &change, sizeof change);
  std::memcpy(record_ + staged_ + sizeof change, bytes, size);
  staged_ += sizeof change + rounded_up(size, 8);
}

void Journal::commit() {
  for (auto& contribute : contributors_) contribute();
  if (staged_ == 0) return;
  probe(Step::kStaged);
  uint64_t size = std::exchange(staged_, 0);
  header_->committed.store(size, std::memory_order_seq_cst);
  redo(size);
}

// The process may die anywhere in here: repeating the copies gives the same result.
void Journal::redo(uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    Change change;
    std::memcpy(&change, record_ + at, sizeof change);
    std::memcpy(static_cast<char*>(state_) + change.offset, record_ + at + sizeof change,
                change.size);
    at += sizeof change + rounded_up(change.size, 8);
    probe(Step::kCommitting);
  }
  header_->committed.store(0, std::memory_order_seq_cst);
}

void Journal::recover() {
  staged_ = 0;
  redo(header_->committed.load(std::memory_order_seq_cst));
}

}  // namespace rocefs
