// What becomes of one request to the administrator: refused with a status, or answered from its
// table. Core thread.
#pragma once

#include <memory>
#include <optional>

#include "mad_cc/sa/sa_records.h"

namespace rocefs::sa {

// 15.2.2, table 185: what the emulated administrator does not do though it knows what it is asked.
inline constexpr uint16_t kRequestDenied = 0x0700;
inline constexpr size_t kHeaderSize = 56;  // of an SA MAD: its data follow
inline constexpr uint8_t kClassVersion = 2;

// The method that answers this one (13.4.5, 15.2.3). Nothing for what is no request, or has no
// answer: it is not for an administrator.
std::optional<uint8_t> answer_method(uint8_t method);

// Why this request cannot be answered, whatever the subnet is like; kOk if it can:
// kBadVersion       another class version
// kBadMethod        none that the class has, or GetMulti and GetTraceTable, which are optional
// kBadMethodAttribute  an attribute that is not served, or not by that method
// kRequestDenied    Set and Delete of ServiceRecord and MCMemberRecord, Set of InformInfo: nobody
//                   can register, subscribe or join here
uint16_t refusal(const mad::Mad& request);

// An answer without data, not by RMPP: headers of the request, its data as they were.
mad::Mad answer_of(const mad::Mad& request, uint16_t status);

// A request while its records are being looked up, a slice at a time.
class Lookup {
 public:
  // `request` has no refusal(). All outlive it.
  Lookup(const mad::Mad& request, const Subnet& subnet, const SubnetState& state, TimeNs delay_ns);
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  bool table() const { return request_.method() == mad::kGetTable; }
  // What the whole answer may grow to; known before anything is looked up.
  size_t most_octets() const;
  // Looks some more records up, for about a tenth of a millisecond. False when that was all.
  bool step();

  // After the last step(): of a table the message with AttributeOffset, for RMPP to send; of a Get
  // the one record, or the status that says that there is none or more than one.
  mad::Message take_table();
  mad::Mad answer() const;
  // kOk, or why not even a table can be answered.
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
