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

}  // namespace rocefs
