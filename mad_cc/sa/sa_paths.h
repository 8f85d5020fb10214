// PathRecords (IBTA volume 1, 15.2.5.16), one for each pair of ends with a route. Core thread.
#pragma once

#include "mad_cc/sa/sa_records.h"

namespace rocefs::sa {

struct PathQuery {
  uint16_t status = mad::kOk;  // if not kOk, there are no records
  std::unique_ptr<Records> records;
};
// Checks a request. kSaBadGid: a GID of a kind or of a port that the subnet does not have, up or
// down. kSaInsufficientComponents: a Get without source or destination. kSaRequestInvalid: NumbPath
// is 0.
//
// Selects PathRecords. ServiceID, FlowLabel, TClass and QoSClass narrow nothing, because one route
// serves all of them: a record repeats the values of the request. `picture` outlives the records.
PathQuery paths_of(const mad::Mad& request, const Picture& picture);
inline constexpr size_t kPathRecordSize = 64;

}  // namespace rocefs::sa
