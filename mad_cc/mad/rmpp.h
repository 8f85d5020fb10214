// Definitions for both ends of a reliable multi-packet transaction (RMPP, IBTA volume 1, 13.6).
#pragma once

#include "mad_cc/mad/mad.h"

namespace rocefs::mad {

// RMPPStatus (13.6.2.1). STOP carries kResourcesExhausted, ABORT those from 118 to 127.
enum RmppStatus : uint8_t {
  kRmppOk = 0,
  kRmppResourcesExhausted = 1,
  kRmppAbortMin = 118,
  kRmppTotalTimeTooLong = 118,
  kRmppBadLength = 119,   // inconsistent Last and PayloadLength
  kRmppBadSegment = 120,  // inconsistent First and SegmentNumber
  kRmppBadType = 121,
  kRmppWindowTooSmall = 122,  // NewWindowLast is before SegmentNumber
  kRmppSegmentTooBig = 123,   // an ACK of what was not sent
  kRmppIllegalStatus = 124,
  kRmppUnsupportedVersion = 125,
  kRmppTooManyRetries = 126,
  kRmppUnspecified = 127,
  kRmppAbortMax = 127,
};

inline constexpr uint8_t kRmppVersion = 1;
inline constexpr size_t kRmppHeaderEnd = 36;
// PayloadLength of a full segment: all octets after the RMPP header, so each segment's class header
// counts.
inline constexpr size_t kRmppPayload = kMadSize - kRmppHeaderEnd;

// Builds an ABORT or STOP with the headers of `mad`: an answer to it or, if `own`, a message to the
// peer of its own transaction.
inline Mad rmpp_end(const Mad& mad, uint8_t type, uint8_t status, bool own = false) {
  Mad end;
  size_t headers = data_offset(mad.mgmt_class());
  std::memcpy(end.bytes.data(), mad.bytes.data(), headers);
  if (!own) end.set_method(mad.method() ^ kResponseBit);
  end.set_rmpp(type, kRmppActive, status, 0, 0);
  return end;
}

}  // namespace rocefs::mad
