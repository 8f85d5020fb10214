// Registered memory of a client: ClientMemory belongs to its process, and the copy thread moves it;
// SharedClientMemory is shared with the engine.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/takeover/shared_memory.h"
#include "rdma/client/process.h"
#include "rdma/packet/memory.h"

namespace rocefs {

class ClientMemory final : public Memory {
 public:
  // `address`: of the first byte, in the process.
  ClientMemory(std::shared_ptr<Process> process, uint64_t address, Process::Pages pages)
      : process_(std::move(process)), address_(address), pages_(pages) {}

  uint64_t program_address() const override { return address_; }
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override {
    process_->write(address_ + offset, source, listener, ticket, pages_);
    return Outcome::kPending;
  }
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override {
    process_->read(address_ + offset, into, listener, ticket, pages_);
    return Outcome::kPending;
  }
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override {
    process_->atomic(address_ + offset, operation, original, listener, ticket, pages_);
    return Outcome::kPending;
  }

 private:
  const std::shared_ptr<Process> process_;
  const uint64_t address_;
  const Process::Pages pages_;
};

// The client may change the bytes at any time: no decision depends on them.
class SharedClientMemory final : public DirectMemory {
 public:
  // `address`: of the first byte, in the process.
  SharedClientMemory(std::shared_ptr<Process> process, std::shared_ptr<SharedMemory> memory,
                     uint64_t address)
      : DirectMemory({memory->data(), memory->size()}),
        process_(std::move(process)),
        memory_(std::move(memory)),
        address_(address) {}
  // Unmapping much memory takes long: not on the core.
  ~SharedClientMemory() override {
    process_->run([memory = std::move(memory_)]() mutable {
      memory.reset();
      return Task();
    });
  }

  uint64_t program_address() const override { return address_; }
  // Places bytes after all moves of the client's memory that were asked for before.
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override {
    process_->store(memory_, direct() + offset, source, listener, ticket);
    return Outcome::kPending;
  }
  // Atomic against the client's own atomic instructions, unless its IOVA is unaligned.
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override {
    if (offset % sizeof original != 0) {
      return DirectMemory::atomic(offset, operation, original, listener, ticket);
    }
    std::atomic_ref number(*reinterpret_cast<uint64_t*>(direct() + offset));
    original = number.load();
    while (!number.compare_exchange_weak(original, operation.result(original))) {
    }
    return Outcome::kDone;
  }

 private:
  const std::shared_ptr<Process> process_;
  std::shared_ptr<SharedMemory> memory_;
  const uint64_t address_;
};

}  // namespace rocefs
