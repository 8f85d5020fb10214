#include "rdma/transport/holes.h"

#include <algorithm>

namespace rocefs {

void Holes::note(uint64_t begin, uint64_t end, TimeNs now, const Patience& patience) {
  auto after = std::lower_bound(holes_.begin(), holes_.end(), begin,
                                [](const Hole& hole, uint64_t psn) { return hole.begin < psn; });
  // The packet that shows the hole counts.
  uint64_t seen_at = arrivals_ - 1;
  holes_.insert(after, {begin, end, seen_at, now + patience.overtaken_ns, 0, 0});
  look_ahead();
}

// One that has come takes the hole apart. An answer is timed only when it can be but one's.
void Holes::fill(uint64_t begin, uint64_t end, TimeNs now) {
  auto at = std::upper_bound(holes_.begin(), holes_.end(), begin,
                             [](uint64_t psn, const Hole& hole) { return psn < hole.end; });
  bool touched = false;
  while (at != holes_.end() && at->begin < end) {
    touched = true;
    if (at->tries == 1) {
      TimeNs took = std::max<TimeNs>(1, now - at->asked_at);
      answer_ns_ = answer_ns_ == 0 ? took : (answer_ns_ * 7 + took) / 8;
    }
    Hole rest = *at;
    rest.begin = end;
    at->end = std::max(at->begin, std::min(at->end, begin));
    bool left = at->begin < at->end;
    if (rest.begin < rest.end) {
      if (left) {
        at = holes_.insert(at + 1, rest) + 1;
      } else {
        *at++ = rest;
      }
    } else {
      at = left ? at + 1 : holes_.erase(at);
    }
  }
  if (touched) look_ahead();
}

void Holes::forget_before(uint64_t psn) {
  if (holes_.empty() || holes_.front().begin >= psn) return;
  std::erase_if(holes_, [&](const Hole& hole) { return hole.end <= psn; });
  if (!holes_.empty()) holes_.front().begin = std::max(holes_.front().begin, psn);
  look_ahead();
}

// Each further try waits twice as long, up to four times the first.
void Holes::set_asked(Hole& hole, TimeNs now, const Patience& patience) {
  TimeNs wait = patience.answer_ns;
  if (answer_ns_ > 0) wait = std::min(wait, std::max(2 * answer_ns_, patience.overtaken_ns));
  wait = std::min(wait << hole.tries, 4 * patience.answer_ns);
  hole.asked_at = now;
  hole.due = now + std::max<TimeNs>(1, wait);
  if (hole.tries <= kMostTries) ++hole.tries;
}

void Holes::look_ahead() {
  due_ = kNever;
  seen_first_ = arrivals_;
  for (const Hole& hole : holes_) {
    due_ = std::min(due_, hole.due);
    if (hole.tries == 0) seen_first_ = std::min(seen_first_, hole.seen_at);
  }
}

}  // namespace rocefs
