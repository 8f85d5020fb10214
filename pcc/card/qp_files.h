// QpFiles: pcc/qps/, a directory for each active queue pair of a device. It is brought up to date
// when somebody looks: queue pairs that come and go cost nothing.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "pcc/card/pcc_device.h"
#include "pcc/card/qp_reading.h"

namespace rocefs {

// Text of pcc/snapshot: the files of all active queue pairs as CSV (RFC 4180), each text as its
// file shows it. Control thread.
std::string qp_table(const PccDevice& device);

// Control thread.
class QpFiles {
 public:
  // All parameters outlive the object. `changed`: whether the active queue pairs have changed since
  // the last call.
  QpFiles(Tree& tree, const std::string& directory, PccDevice& device, Engine& engine,
          std::function<bool()> changed);

 private:
  void update();
  void add(uint32_t qpn);
  std::string path_of(uint32_t qpn) const;

  Tree& tree_;
  const std::string directory_;
  PccDevice& device_;
  Engine& engine_;
  std::map<uint32_t, uint32_t> generations_;  // by number, of those with a directory
};

}  // namespace rocefs
