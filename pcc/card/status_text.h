// Text of pcc/status: one device's block of `mango-ctl rdma pcc status`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pcc/card/backend.h"
#include "pcc/card/qp_reading.h"

namespace rocefs {

struct PccStatus {
  std::string device;
  std::vector<QpReading> qps;
  const PccAlgorithmInfo* algorithm = nullptr;  // null: none applied
  unsigned pollers = 1;
  std::string owner;  // program that sets the windows; empty: none
  uint32_t slow_calls = 0;
  std::string last_error;  // empty: none
  // Queue pairs that run another algorithm, by its name.
  std::map<std::string, std::vector<uint32_t>> others = {};
};

std::string status_text(const PccStatus& status);

}  // namespace rocefs
