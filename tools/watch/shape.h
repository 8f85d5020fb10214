// Shape: devices, switches and cables of a mount, as its files show them.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

struct Shape {
  struct Node {
    enum class Kind { kDevice, kSwitch, kUplink } kind;
    std::string name;
  };
  // Both directions of a cable, or of a direction whose other one is not there.
  struct Cable {
    size_t a, b;                      // nodes
    unsigned a_port = 0, b_port = 0;  // port of a switch or a device, from 1; 0: of an uplink
    std::string out, back;            // directories below links/: from a to b, and from b to a
  };

  std::vector<Node> nodes;  // switches, devices, uplinks, each in the order of their numbers
  std::vector<Cable> cables;
};

Result<Shape> shape_of(const MountFiles& files);

}  // namespace rocefs
