// Administrator of the small subnet, and clients that query it and take its tables by RMPP.
#pragma once

#include <functional>
#include <vector>

#include "mad_cc/mad/rmpp.h"
#include "mad_cc/sa/sa.h"
#include "mad_cc/sa/sa_records.h"
#include "test/mad_cc/net/small_subnet.h"

namespace rocefs {

struct SaClient final : MadCarrier {
  struct Answer {
    mad::Address to;
    mad::Mad mad;
    TimeNs at;
  };
  explicit SaClient(uint64_t seed = 1, Subnet made = small_subnet())
      : subnet(std::move(made)),
        state(subnet),
        administrator(subnet, state, scheduler, seed, *this) {}

  static mad::Mad request(uint8_t method, uint16_t attribute, uint64_t mask = 0) {
    mad::Mad mad;
    mad.bytes[0] = 1;
    mad.bytes[1] = mad::kSubnAdm;
    mad.bytes[2] = 2;
    mad.set_method(method);
    wire::store16(&mad.bytes[16], attribute);
    wire::store64(&mad.bytes[48], mask);
    return mad;
  }
  // Sends with a TID of its own; the answers are in `answers`.
  uint64_t send(mad::Mad mad, uint16_t lid = 3) {
    mad.set_tid(++last_tid);
    from.lid = lid;
    administrator.receive(from, mad);
    return last_tid;
  }
  void run(TimeNs duration = 0) { scheduler.run_until(scheduler.now() + duration); }
  // Returns the single answer to a request, at once.
  mad::Mad get(const mad::Mad& mad) {
    answers.clear();
    send(mad);
    run();
    return answers.size() == 1 ? answers[0].mad : mad::Mad{};
  }
  uint16_t status(const mad::Mad& mad) { return get(mad).status(); }

  void acknowledge(const Answer& segment, uint32_t window_last) {
    mad::Mad ack = segment.mad;
    ack.set_method(segment.mad.method() ^ mad::kResponseBit);
    ack.set_rmpp(mad::kRmppAck, mad::kRmppActive, 0, segment.mad.rmpp_segment(), window_last);
    mad::Address at = from;
    at.lid = segment.to.lid;
    administrator.receive(at, ack);
  }
  // Returns the data of a table, whose segments are acknowledged one by one in order. `lost`
  // selects the transmissions, counted from 0, that do not arrive.
  std::vector<uint8_t> table(const mad::Mad& mad, const std::function<bool(size_t)>& lost = nullptr,
                             uint16_t lid = 3) {
    answers.clear();
    segments = transmissions = 0;
    uint64_t tid = send(mad, lid);
    std::vector<uint8_t> data;
    for (int turn = 0; turn < 100'000; ++turn) {
      run();
      for (const Answer& answer : std::exchange(answers, {})) {
        if (answer.mad.tid() != tid) continue;
        bool arrives = !lost || !lost(transmissions);
        ++transmissions;
        if (!arrives || answer.mad.rmpp_segment() != segments + 1) continue;
        last = answer.mad;
        ++segments;
        bool whole = (last.rmpp_flags() & mad::kRmppLast) != 0;
        size_t length = whole ? last.rmpp_length() - 20 : 200;
        data.insert(data.end(), last.bytes.begin() + 56, last.bytes.begin() + 56 + length);
        acknowledge(answer, segments + (whole ? 0 : 1));
        if (!whole) continue;
        run();
        return data;
      }
      if (answers.empty() && scheduler.next() != kNever) run(scheduler.next() - scheduler.now());
    }
    return data;
  }

  void transmit(MadReceiver&, const mad::Address& to, const mad::Mad& mad) override {
    answers.push_back({to, mad, scheduler.now()});
  }

  Subnet subnet;
  SmallState state;
  Scheduler scheduler;
  std::vector<Answer> answers;
  mad::Address from{3, 1, mad::kQkey, 0, 0, 0};
  uint64_t last_tid = 0x100000000;
  uint32_t segments = 0;
  size_t transmissions = 0;
  mad::Mad last;  // segment of a table
  SubnetAdministrator administrator;
};

}  // namespace rocefs
