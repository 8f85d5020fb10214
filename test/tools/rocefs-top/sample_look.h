// Looks at a mount that is not there, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/rocefs-top/look_reader.h"

namespace rocefs::top {

using SampleFiles = std::vector<std::pair<std::string, std::string>>;

inline Look sample_look(uint64_t now_ns, const SampleFiles& files, bool virtual_clock = false) {
  Look look;
  std::vector<Looks::Line> lines;
  for (const auto& [path, text] : files) lines.push_back({path, text});
  LookLines().put(lines, true, look);
  look.now_ns = now_ns;
  look.virtual_clock = virtual_clock;
  return look;
}

inline std::string sample_queue(int port, const char* file) {
  return "kernel/debug/rocefs/fabric/sw_0/ports/" + std::to_string(port) + "/" + file;
}

// A NIC, a link of 1 Gb/s and two queues, after `octets` and as many packets by a thousandth.
inline SampleFiles sample_files(uint64_t octets, const std::string& queued = "0") {
  const std::string sent = std::to_string(octets), packets = std::to_string(octets / 1000);
  const std::string port = "class/infiniband/mb_0/ports/1/", link = "kernel/debug/rocefs/links/";
  return {{port + "state", "4: ACTIVE"},
          {port + "counters/port_xmit_data", std::to_string(octets / 4)},
          {port + "counters/port_xmit_packets", packets},
          {port + "hw_counters/np_cnp_sent", packets},
          {link + "mb_0-sw_0/state", "up"},
          {link + "mb_0-sw_0/rate", "1G"},
          {link + "mb_0-sw_0/bytes", sent},
          {link + "mb_0-sw_0/packets", packets},
          {link + "mb_0-sw_0/lost", "0"},
          {sample_queue(2, "queue/0/bytes"), queued},
          {sample_queue(2, "queue/0/marked"), packets},
          {sample_queue(2, "pfc/0/paused"), queued == "0" ? "0" : "1"},
          {sample_queue(10, "queue/0/bytes"), "7"},
          {sample_queue(10, "pfc/0/paused"), "0"},
          {"kernel/debug/rocefs/traffic/f/state", "running"},
          {"kernel/debug/rocefs/traffic/f/window", "4294967295"},
          {"kernel/debug/rocefs/traffic/f/result", "bytes " + sent + "\\ncnps 3"}};
}

}  // namespace rocefs::top
