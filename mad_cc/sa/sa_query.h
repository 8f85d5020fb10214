// Lookup: one request to the administrator: refused with a status, or answered from its table. Core
// thread.
#pragma once

#include <memory>
#include <optional>

#include "mad_cc/sa/sa_records.h"

namespace rocefs::sa {

// Status of optional functions that the emulated administrator does not have (15.2.2, table 185).
inline constexpr uint16_t kRequestDenied = 0x0700;
inline constexpr size_t kHeaderSize = 56;  // of an SA MAD: its data follow
inline constexpr uint8_t kClassVersion = 2;

// Returns the method of the answer (13.4.5, 15.2.3); nothing for a MAD that is no request or has no
// answer, and so is not for an administrator.
std::optional<uint8_t> answer_method(uint8_t method);

// Returns why this request cannot be answered by any subnet; kOk if it can:
// kBadVersion       another class version
// kBadMethod        none that the class has, or GetMulti and GetTraceTable, which are optional
// kBadMethodAttribute  an attribute that is not served, or not by that method
// kRequestDenied    Set and Delete of ServiceRecord and MCMemberRecord, Set of InformInfo:
//                   registrations are not supported
uint16_t refusal(const mad::Mad& request);

// Builds an answer without data or RMPP: the headers of the request, its data unchanged.
mad::Mad answer_of(const mad::Mad& request, uint16_t status);

// Request whose records are being looked up, a slice at a time.
class Lookup {
 public:
  // `request` has no refusal(). The arguments outlive the lookup.
  Lookup(const mad::Mad& request, const Subnet& subnet, const SubnetState& state, TimeNs delay_ns);
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  bool table() const { return request_.method() == mad::kGetTable; }
  // Returns the upper bound of the answer's size, known before the lookup.
  size_t most_octets() const;
  // Looks up more records, for about a tenth of a millisecond. Returns false once all are done.
  bool step();

  // Returns, after the last step(), the message of a table with AttributeOffset, for RMPP to send;
  // of a Get, the one record or the status for none or for more than one.
  mad::Message take_table();
  mad::Mad answer() const;
  // Returns kOk, or the reason for which not even a table can be answered.
  uint16_t status() const { return status_; }

 private:
  bool enough() const { return !table() && found_ > 1; }

  mad::Mad request_;
  Picture picture_;
  uint16_t status_ = mad::kOk;
  std::unique_ptr<Records> records_;
  mad::Message message_;
  size_t candidate_ = 0;
  size_t found_ = 0;
};

}  // namespace rocefs::sa
