// What all agents make their answers by (IBTA volume 1, 13.4.7 and 13.5.1).
#pragma once

#include "mad_cc/mad/mad.h"

namespace rocefs::mad {

// The answer to a Get or Set: its header, with the status, and its data. SMPs of a directed route
// get their direction elsewhere.
inline Mad answer_to(const Mad& request, uint16_t status) {
  Mad answer = request;
  answer.set_method(kGetResp);
  answer.set_status(status);
  return answer;
}

// Whether nobody answers it: a response, or one of the methods that have none.
inline bool expects_nothing(const Mad& mad) {
  return mad.is_response() || mad.method() == kSend || mad.method() == kTrap;
}

// 13.4.7: what is wrong with the header of a request for an agent that has Get and Set.
inline uint16_t check_header(const Mad& request, uint8_t class_version) {
  constexpr uint8_t kBaseVersion = 1;
  if (request.base_version() != kBaseVersion || request.class_version() != class_version) {
    return kBadVersion;
  }
  return request.method() == kGet || request.method() == kSet ? kOk : kBadMethod;
}

}  // namespace rocefs::mad
