// QpFiles: pcc/qps/, a directory for each active queue pair of a device.
#pragma once

#include <map>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "pcc/card/pcc_device.h"
#include "pcc/card/qp_reading.h"

namespace rocefs {

// Control thread.
class QpFiles {
 public:
  // All parameters outlive the object.
  QpFiles(Tree& tree, const std::string& directory, PccDevice& device, Engine& engine);

  // Adds and removes directories after a change of the active queue pairs.
  void update();

 private:
  void add(uint32_t qpn);
  std::string path_of(uint32_t qpn) const;

  Tree& tree_;
  const std::string directory_;
  PccDevice& device_;
  Engine& engine_;
  std::map<uint32_t, uint32_t> generations_;  // by number, of those with a directory
};

}  // namespace rocefs
