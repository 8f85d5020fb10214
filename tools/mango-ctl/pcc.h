// What the commands of PCC ask of a device's files.
#pragma once

#include <string>
#include <vector>

#include "tools/mango-ctl/session.h"

namespace rocefs {

inline constexpr const char* kNoWindow = "4294967295";

Result<bool> pcc_is_active(const NicTree& tree, const std::string& device);
// The numbers of the queue pairs that are active now, in their order.
Result<std::vector<std::string>> active_qps(const NicTree& tree, const std::string& device);
// One of them, as it is now: the text of every file. False when it has gone meanwhile.
struct QpFiles {
  std::string window, cnp, ctrl_count, rtt_ns, rtt_timeouts, rate, pid, comm, algo;
};
bool read_qp(const NicTree& tree, const std::string& device, const std::string& qp, QpFiles& files);
// With stable keys; a window without limit is null.
Json qp_json(const std::string& qp, const QpFiles& files);

}  // namespace rocefs
