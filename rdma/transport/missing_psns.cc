#include "rdma/transport/missing_psns.h"

#include <algorithm>

namespace rocefs {

void MissingPsns::add(uint64_t begin, uint64_t end, TimeNs now,
                      const ReorderLimits& reorder_limits) {
  auto after = std::lower_bound(gaps_.begin(), gaps_.end(), begin,
                                [](const Gap& gap, uint64_t psn) { return gap.begin < psn; });
  // The packet that reveals the hole counts as one that overtook it.
  uint64_t seen_at = arrivals_ - 1;
  gaps_.insert(after, {begin, end, seen_at, now + reorder_limits.reorder_ns, 0, 0, 0, 0});
  find_next_due();
}

// Splits holes around received PSNs. A reply is timed from the first try, which it may not answer:
// too long a time is put right by later replies, while one too short would bring none that counts.
// The packets of a hole come one after the other, so that the rest of it is late only when none has
// come for as long as a reply may take.
void MissingPsns::mark_received(uint64_t begin, uint64_t end, TimeNs now) {
  auto at = std::upper_bound(gaps_.begin(), gaps_.end(), begin,
                             [](uint64_t psn, const Gap& gap) { return psn < gap.end; });
  bool touched = false;
  while (at != gaps_.end() && at->begin < end) {
    touched = true;
    if (at->tries > 0) {
      TimeNs took = std::max<TimeNs>(1, now - at->asked_at);
      reply_ns_ = reply_ns_ == 0 ? took : (reply_ns_ * 7 + took) / 8;
      ++repairs_;
    }
    Gap rest = *at;
    rest.begin = end;
    if (rest.tries > 0) rest.due = std::max(rest.due, now + rest.wait);
    at->end = std::max(at->begin, std::min(at->end, begin));
    bool left = at->begin < at->end;
    if (rest.begin < rest.end) {
      if (left) {
        at = gaps_.insert(at + 1, rest) + 1;
      } else {
        *at++ = rest;
      }
    } else {
      at = left ? at + 1 : gaps_.erase(at);
    }
  }
  if (touched) find_next_due();
}

void MissingPsns::drop_before(uint64_t psn) {
  if (gaps_.empty() || gaps_.front().begin >= psn) return;
  std::erase_if(gaps_, [&](const Gap& gap) { return gap.end <= psn; });
  if (!gaps_.empty()) gaps_.front().begin = std::max(gaps_.front().begin, psn);
  find_next_due();
}

// Each further try waits twice as long, up to four times the limit; while replies come to anything
// that was asked for, no longer than the second.
void MissingPsns::set_asked(Gap& gap, TimeNs now, const ReorderLimits& reorder_limits) {
  if (gap.tries == 0) gap.asked_at = now;
  if (gap.repairs != repairs_) gap.tries = std::min<uint8_t>(gap.tries, 1);
  TimeNs wait = reorder_limits.reply_ns;
  if (reply_ns_ > 0) wait = std::min(wait, std::max(2 * reply_ns_, reorder_limits.reorder_ns));
  wait = std::min(wait << gap.tries, 4 * reorder_limits.reply_ns);
  gap.repairs = repairs_;
  gap.wait = std::max<TimeNs>(1, wait);
  gap.due = now + gap.wait;
  if (gap.tries <= kMaxTries) ++gap.tries;
}

void MissingPsns::find_next_due() {
  due_ = kNever;
  seen_first_ = arrivals_;
  for (const Gap& gap : gaps_) {
    due_ = std::min(due_, gap.due);
    if (gap.tries == 0) seen_first_ = std::min(seen_first_, gap.seen_at);
  }
}

}  // namespace rocefs
