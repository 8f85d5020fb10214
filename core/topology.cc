#include "core/topology.h"

namespace rocefs {

Topology default_topology() {
  Topology topology;
  topology.devices = {
      {"mb_0", "0000:2b:00.0", "enp43s0", {0x02, 0, 0x4c, 0x6d, 0x62, 1}, {10, 77, 0, 1}, {}, 4096},
      {"mb_1",
       "0000:ac:00.0",
       "enp172s0",
       {0x02, 0, 0x4c, 0x6d, 0x62, 2},
       {10, 77, 0, 2},
       {},
       4096}};
  topology.switches = {{"sw_0"}};
  topology.links = {{"mb_0", "sw_0"}, {"mb_1", "sw_0"}};
  return topology;
}

}  // namespace rocefs
