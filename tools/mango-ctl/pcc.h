// Reads of a device's files that several commands of PCC share.
#pragma once

#include <string>
#include <vector>

#include "tools/mango-ctl/session.h"

namespace rocefs {

inline constexpr const char* kNoWindow = "4294967295";

Result<bool> pcc_is_active(const NicTree& tree, const std::string& device);
// Numbers of the active queue pairs, in their order.
Result<std::vector<std::string>> active_qps(const NicTree& tree, const std::string& device);
// Files of an active queue pair, their texts as read. read_qp() is false when it has gone.
struct QpFiles {
  std::string window, cnp, ctrl_count, rtt_ns, rtt_timeouts, rate, pid, comm, algo;
};
bool read_qp(const NicTree& tree, const std::string& device, const std::string& qp, QpFiles& files);
// JSON object with stable keys; a window without limit is null.
Json qp_json(const std::string& qp, const QpFiles& files);

}  // namespace rocefs
