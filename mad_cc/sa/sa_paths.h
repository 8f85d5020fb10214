// PathRecords (IBTA volume 1, 15.2.5.16): one for each pair of ends between which there is a way.
// Core thread.
#pragma once

#include "mad_cc/sa/sa_records.h"

namespace rocefs::sa {

struct PathQuery {
  uint16_t status = mad::kOk;  // if not kOk, there are no records
  std::unique_ptr<Records> records;
};
// kSaBadGid: a GID of a kind or of a port that the subnet does not have, up or down.
// kSaInsufficientComponents: a Get that leaves its source or its destination open.
// kSaRequestInvalid: NumbPath is 0.
//
// What names a service or a quality of service (ServiceID, FlowLabel, TClass, QoSClass) narrows
// nothing, because there is one way from end to end for all of them: a record has these as they
// were asked for. `picture` outlives the records.
PathQuery paths_of(const mad::Mad& request, const Picture& picture);
inline constexpr size_t kPathRecordSize = 64;

}  // namespace rocefs::sa
