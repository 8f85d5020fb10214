// Reads of a device's files that several commands of PCC share.
#pragma once

#include <string>
#include <vector>

#include "tools/mango-ctl/session.h"

namespace rocefs {

inline constexpr const char* kNoWindow = "4294967295";

Result<bool> pcc_is_active(const NicTree& tree, const std::string& device);
// ENOENT with the names of those that are, if the device has no such algorithm.
Result<void> must_be_loaded(const NicTree& tree, const std::string& device,
                            const std::string& algorithm);
// Name of the applied algorithm, `none`, or empty if it cannot be read.
std::string applied_to(const NicTree& tree, const std::string& device);
// Program that has claimed a device's windows, by the text of pcc/owner.
struct PccOwner {
  std::string text;  // NAME (pid PID); empty if none has
  Json json() const;
};
PccOwner owner_of(DeviceReader& files);
// Active queue pair: its number, and the texts of its files.
struct QpFiles {
  std::string qp, window, cnp, ctrl_count, rtt_ns, rtt_timeouts, rate, pid, comm, algo;
};
// All active queue pairs at one moment, in the order of their numbers. EPROTO if a file is missing.
Result<std::vector<QpFiles>> read_qps(const NicTree& tree, const std::string& device);
// JSON object with stable keys; a window without limit is null.
Json qp_json(const QpFiles& files);

}  // namespace rocefs
