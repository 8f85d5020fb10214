#include "rdma/tree/uplink_files.h"

#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "rdma/uplink/uplink.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {

void add_uplink_files(Tree& tree, const std::string& debug, Fabric& fabric, Engine& engine) {
  for (const auto& uplink : fabric.uplinks()) {
    std::string directory = fmt::format("{}/uplinks/{}", debug, uplink->name());
    auto knobs = std::make_shared<KnobSet>(kUplinkKnobs, engine, uplink.get(),
                                           std::vector<KnobValue>{uint64_t{uplink->gso()}});
    add_knob_files(tree, directory, knobs);
    add_counter_files(tree, directory, kUplinkCounters, uplink->counters());
    auto show = [uplink = uplink.get()]() -> Result<std::string> {
      std::string addresses;
      for (const Ip& ip : uplink->addresses()) addresses += ip_text(ip) + " ";
      if (!addresses.empty()) addresses.pop_back();
      return addresses;
    };
    tree.add_file(directory + "/addresses",
                  read_only(show,
                            "the machine's addresses from which it sends, and at whose "
                            "UDP port 4791 it receives"));
  }
}

}  // namespace rocefs
