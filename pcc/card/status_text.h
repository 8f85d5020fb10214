// The text of pcc/status: the block of a device as `mango-ctl rdma pcc status` prints it.
#pragma once

#include <string>
#include <vector>

#include "pcc/card/backend.h"
#include "pcc/card/qp_reading.h"

namespace rocefs {

struct PccStatus {
  std::string device;
  std::vector<QpReading> qps;
  const PccAlgorithmInfo* algorithm = nullptr;  // null: none is applied
  unsigned pollers = 1;
  std::string owner;       // a program that sets the windows; empty: there is none
  std::string last_error;  // empty: there was none
};

std::string status_text(const PccStatus& status);

}  // namespace rocefs
