// Jobs: moves and other work for a copy thread, in order.
#include <algorithm>

#include "rdma/client/process.h"

namespace rocefs {

void Process::Jobs::clear() {
  list.clear();
  here.clear();
}

void Process::Jobs::swap(Jobs& other) {
  list.swap(other.list);
  here.swap(other.here);
}

void Process::Jobs::append(Jobs& others) {
  std::move(others.list.begin(), others.list.end(), std::back_inserter(list));
  here.insert(here.end(), others.here.begin(), others.here.end());
}

void Process::Jobs::push(Job& job, std::span<const iovec> parts) {
  list.push_back(std::move(job));
  here.insert(here.end(), parts.begin(), parts.end());
}

// Removes the first jobs with their places.
void Process::Jobs::drop(size_t count, size_t places) {
  list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(count));
  here.erase(here.begin(), here.begin() + static_cast<ptrdiff_t>(places));
}

void Process::atomic(uint64_t address, const AtomicOperation& operation, uint64_t& original,
                     MemoryListener& listener, uint64_t ticket, Pages pages) {
  Job& job = asked_.list.emplace_back();
  job.kind = Job::Kind::kAtomic;
  job.pages = pages;
  job.parts = 1;
  job.address = address;
  job.extra = std::make_unique<Extra>();
  job.extra->operation = operation;
  job.extra->original = &original;
  job.listener = &listener;
  job.ticket = ticket;
}

void Process::store(std::shared_ptr<const void> keep, uint8_t* into, std::span<const uint8_t> from,
                    MemoryListener& listener, uint64_t ticket) {
  Job& job = asked_.list.emplace_back();
  job.kind = Job::Kind::kStore;
  job.parts = 1;
  job.extra = std::make_unique<Extra>();
  job.extra->keep = std::move(keep);
  job.extra->into = into;
  job.extra->from = from;
  job.listener = &listener;
  job.ticket = ticket;
}

}  // namespace rocefs
