#include "pcc/run/agenda.h"

#include <algorithm>
#include <utility>

namespace rocefs {

void PccAgenda::pop_from_heap() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
}

void PccAgenda::push_to_heap(const Entry& entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), later);
}

void PccAgenda::grow() {
  std::vector<Entry> larger(2 * ring_.size());
  for (size_t number = begin_; number != end_; ++number) {
    larger[number & (larger.size() - 1)] = in_line(number);
  }
  ring_ = std::move(larger);
  mask_ = ring_.size() - 1;
}

}  // namespace rocefs
