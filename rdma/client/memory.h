// ClientMemory: registered memory of a client's process.
#pragma once

#include <memory>
#include <utility>

#include "rdma/client/process.h"
#include "rdma/memory.h"

namespace rocefs {

class ClientMemory final : public Memory {
 public:
  // `address`: of its first byte, in the process.
  ClientMemory(std::shared_ptr<Process> process, uint64_t address)
      : process_(std::move(process)), address_(address) {}

  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener& listener,
                uint64_t ticket) override {
    process_->write(address_ + offset, source, listener, ticket);
    return Outcome::kPending;
  }
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override {
    process_->read(address_ + offset, into, listener, ticket);
    return Outcome::kPending;
  }
  Outcome atomic(uint64_t offset, const AtomicOperation& operation, uint64_t& original,
                 MemoryListener& listener, uint64_t ticket) override {
    process_->atomic(address_ + offset, operation, original, listener, ticket);
    return Outcome::kPending;
  }

 private:
  const std::shared_ptr<Process> process_;
  const uint64_t address_;
};

}  // namespace rocefs
