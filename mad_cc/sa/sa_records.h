// Records: the contents of the administrator's tables (IBTA volume 1, 15.2.5), made on request.
// Core thread.
#pragma once

#include <memory>

#include "core/base/time.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/net/routes.h"
#include "mad_cc/net/subnet.h"

namespace rocefs::sa {

// Attributes that are served or refused by name (15.2.5, table 188).
enum Attribute : uint16_t {
  kClassPortInfo = 0x0001,
  kInformInfo = 0x0003,
  kNodeRecord = 0x0011,
  kPortInfoRecord = 0x0012,
  kSlToVlTableRecord = 0x0013,
  kSwitchInfoRecord = 0x0014,
  kLinearForwardingTableRecord = 0x0015,
  kMulticastForwardingTableRecord = 0x0017,
  kSmInfoRecord = 0x0018,
  kLinkRecord = 0x0020,
  kGuidInfoRecord = 0x0030,
  kServiceRecord = 0x0031,
  kPKeyTableRecord = 0x0033,
  kPathRecord = 0x0035,
  kVlArbitrationTableRecord = 0x0036,
  kMcMemberRecord = 0x0038,
  kInformInfoRecord = 0x00f3,
};

// Picture: the source of tables. The subnet and its state outlive it.
struct Picture {
  const Subnet& subnet;
  const SubnetState& state;
  TimeNs delay_ns;  // how long answers take
  Routes routes;
};

// Selection of one request from one table; its candidates are examined one by one.
class Records {
 public:
  virtual ~Records() = default;
  // Octets from one record to the next, a multiple of 8 (the unit of AttributeOffset).
  virtual size_t size() const = 0;
  virtual size_t candidates() const = 0;
  // Writes a candidate's record into size() octets, which are 0. Returns false, with octets of no
  // use, if the record does not exist or does not match the request.
  virtual bool make(size_t candidate, uint8_t* record) const = 0;
};

// Selects records of any served attribute but PathRecord (see sa_paths.h); null for others.
// `request` is copied, `picture` outlives the records.
std::unique_ptr<Records> records_of(const mad::Mad& request, const Picture& picture);
// Returns the size of a record, 0 for attributes that are not served.
size_t record_size(uint16_t attribute);

}  // namespace rocefs::sa
