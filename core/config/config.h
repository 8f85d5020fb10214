// The ini file: topology, clock, and start values of knobs.
//
//   [clock]            mode=real|virtual, dilation=N, seed=N
//   [topology]         kind=star|dumbbell|leaf-spine|fat-tree, … (core/config/topology_shapes.h)
//   [device NAME]      pci=0000:2b:00.0, ports=1|2, netdev=, mac=, ip=, ip6=, mtu=  (all optional)
//   [port NAME 2]      netdev=, mac=, ip=, ip6=, mtu= of the second port  (all optional)
//   [nic]              mgmt=default|none: whether management links have addresses at first,
//                      mad_semantics=doc|ofed4|ofed25: how SA requests are limited
//   [switch NAME]      buffer=12M
//   [uplink NAME]      gso=off|on  (optional): where the fabric is joined to the kernel's network
//   [link A B]         rate=10G, delay=1us, loss=0, buffer=1T, ingress_buffer=1T, state=up|down
//   [knobs]            PATH = VALUE, as if echoed into PATH below the mount point
//   [sim], [flows], …  a run: see core/config/scenario.h. A mount starts nothing of it
//
// A file either names a shape, or devices, switches, uplinks and links; each replaces the default
// topology as a whole. The N-th device is 10.77.0.N and 02:00:4c:6d:62:NN by default, its second
// port 10.77.1.N and 02:00:4c:6d:63:NN (to N = 200, and beyond as core/config/topology.h has it).
// Names are [A-Za-z0-9_.-]+. A link's ends are switches,
// uplinks (one link each) and ports: NAME is port 1 of a device, NAME/2 its second, whose links
// have the directories NAME.2-B and B-NAME.2. A line that begins with ; or # is a comment, and so
// is the text after a blank and ; in a line. Outside [knobs] and the sections of a run, KEY : VALUE
// is KEY = VALUE. Other lines hold at most 197 characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/config/scenario.h"
#include "core/config/topology.h"

namespace rocefs {

struct Config {
  std::string name;  // file name, for errors
  std::string
      directory;  // of the file, with a / at its end; files that it names are relative to it
  std::optional<Topology> topology;
  std::vector<KnobSetting> knobs;
  std::optional<ClockMode> clock;
  int clock_line = 0;  // line of mode=
  std::optional<uint64_t> seed, dilation;
  int dilation_line = 0;
  bool mgmt = true;  // management links have addresses at first
  std::string mad_semantics = "doc";
  Scenario scenario;
  uint64_t hash = 0;    // of the file's text, and of `inputs` if there are any
  uint64_t inputs = 0;  // hash of files that a run reads, once a run has looked at them; 0: none
  std::string text;
};

// The reason of an error is FILE:LINE: WHY, or FILE: WHY if there is no line. EINVAL for invalid
// content; EFBIG above 2 GiB; else the errno of open or read.
Result<Config> read_config(const std::string& path);
Result<Config> parse_config(std::string_view text, const std::string& name);

}  // namespace rocefs
