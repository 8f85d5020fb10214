// Answers of SMA and PMA: header checks and headers (IBTA volume 1, 13.4.7 and 13.5.1).
#pragma once

#include "mad_cc/mad/mad.h"

namespace rocefs::mad {

// Builds the answer to a Get or Set from the request's header and data, and `status`. The direction
// bit of a directed-route SMP is set by the network.
inline Mad answer_to(const Mad& request, uint16_t status) {
  Mad answer = request;
  answer.set_method(kGetResp);
  answer.set_status(status);
  return answer;
}

// Returns whether `mad` needs no answer: a response, or a method that has none.
inline bool expects_nothing(const Mad& mad) {
  return mad.is_response() || mad.method() == kSend || mad.method() == kTrap;
}

// Returns whether a Get or Set for which there is no agent is answered, with kBadMethodAttribute,
// as by generate_unmatched_resp() of the kernel.
inline bool is_refusable(const Mad& mad) {
  return mad.base_version() == 1 && (mad.method() == kGet || mad.method() == kSet);
}

// Checks the header of a request to an agent that has Get and Set (13.4.7).
inline uint16_t check_header(const Mad& request, uint8_t class_version) {
  constexpr uint8_t kBaseVersion = 1;
  if (request.base_version() != kBaseVersion || request.class_version() != class_version) {
    return kBadVersion;
  }
  return request.method() == kGet || request.method() == kSet ? kOk : kBadMethod;
}

}  // namespace rocefs::mad
