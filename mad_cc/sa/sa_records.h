// Records: what the administrator's tables hold, record by record (IBTA volume 1, 15.2.5). Nothing
// of a table is made before somebody asks for it. Core thread.
#pragma once

#include <memory>

#include "core/base/time.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/net/routes.h"
#include "mad_cc/net/subnet.h"

namespace rocefs::sa {

// 15.2.5, table 188. The records that are served, and what is refused by name.
enum Attribute : uint16_t {
  kClassPortInfo = 0x0001,
  kInformInfo = 0x0003,
  kNodeRecord = 0x0011,
  kPortInfoRecord = 0x0012,
  kSwitchInfoRecord = 0x0014,
  kLinearForwardingTableRecord = 0x0015,
  kSmInfoRecord = 0x0018,
  kLinkRecord = 0x0020,
  kGuidInfoRecord = 0x0030,
  kServiceRecord = 0x0031,
  kPathRecord = 0x0035,
  kMcMemberRecord = 0x0038,
  kInformInfoRecord = 0x00f3,
};

// What tables are made from. The subnet and its state outlive it.
struct Picture {
  const Subnet& subnet;
  const SubnetState& state;
  TimeNs delay_ns;  // how long answers take
  Routes routes;
};

// The selection of one request from one table: its candidates are looked at one by one.
class Records {
 public:
  virtual ~Records() = default;
  // Octets from one to the next, a multiple of 8 (AttributeOffset counts so).
  virtual size_t size() const = 0;
  virtual size_t candidates() const = 0;
  // Writes a candidate's record into size() octets, which are 0. False, and what is there is of no
  // use, if there is no such record or it is not as the request wants it.
  virtual bool make(size_t candidate, uint8_t* record) const = 0;
};

// Of all attributes that are served but PathRecord: see sa_paths.h. Nothing for others. `request`
// is copied, `picture` outlives it.
std::unique_ptr<Records> records_of(const mad::Mad& request, const Picture& picture);
// The octets of such a record, 0 for attributes that are not served.
size_t record_size(uint16_t attribute);

}  // namespace rocefs::sa
