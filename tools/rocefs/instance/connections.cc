#include "tools/rocefs/instance/connections.h"

#include <fmt/format.h>

#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "rdma/cm/ucma_abi.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

struct Group {
  std::string_view directory, doc;
  CmCounters::ByMessage CmCounters::*counters;
};
constexpr Group kGroups[] = {
    {"cm_tx_msgs", "messages that the port's communication manager sent, by kind",
     &CmCounters::transmitted},
    {"cm_tx_retries", "messages that were retransmitted, by kind", &CmCounters::retried},
    {"cm_rx_msgs", "messages that the port's communication manager received, by kind",
     &CmCounters::received},
    {"cm_rx_duplicates", "messages that arrived again, or too late, by kind",
     &CmCounters::duplicates},
};

// cm_ids: the text is made on the core.
class IdsFile final : public Stream {
 public:
  IdsFile(Engine& engine, const Cma& cma) : engine_(engine), cma_(cma) {}
  void content(Answer<std::string> answer) override {
    engine_.call<std::string>([this]() -> Result<std::string> { return cma_.text(); },
                              std::move(answer));
  }
  FileDoc doc() const override {
    return {"value", {}, {}, "ids of programs that use librdmacm: addresses and state"};
  }

 private:
  Engine& engine_;
  const Cma& cma_;
};

}  // namespace

Connections::Connections(Tree& tree, Engine& engine, Fabric& fabric, const std::string& debug,
                         uint64_t salt)
    : engine_(engine), fabric_(fabric), cma_(fabric, salt), ucma_(cma_) {
  tree.add_file(debug + "/cm_ids", std::make_shared<IdsFile>(engine, cma_));
  tree.add_file("class/misc/rdma_cm/abi_version",
                constant(fmt::format("{}", ucma::kAbiVersion),
                         "ABI version of rdma_cm (RDMA_USER_CM_ABI_VERSION)"));
  tree.add_file("class/misc/rdma_cm/dev",
                constant("1:3", "the character device behind dev/infiniband: /dev/null"));
  tree.add_link_out("dev/infiniband/rdma_cm", "/dev/null");
}

// Where nothing can be asked an address is as good as known: the connection will fail.
void Connections::search_neighbours(PollLoop& loop, const Hosts& hosts) {
  own_.emplace(loop);
  auto begin = [this, &hosts](const CmSearch& search) {
    NeighbourSearch* at = search.host ? hosts.neighbours(*search.host) : own_->search();
    auto answer = [this, search](int error) {
      engine_.post_retrying([this, search, error] { cma_.answered(search, error); });
    };
    at ? at->find(search.source, search.destination, search.patience, answer) : answer(0);
  };
  cma_.search_by([this, begin](const CmSearch& search) {
    engine_.tell_control([begin, search] { begin(search); });
  });
}

void Connections::bound(Tree& tree, const std::string& directory, Device& device) {
  for (size_t number = 1; number <= device.port_count(); ++number) {
    CmCounters& counters = cma_.manager(device).counters(device.port(number));
    std::string port = fmt::format("{}/ports/{}", directory, number);
    tree.add_later(port, [&tree, port, &counters] {
      for (const Group& group : kGroups) {
        for (size_t i = 0; i < cm::kMessages; ++i) {
          tree.add_file(fmt::format("{}/{}/{}", port, group.directory, cm::kNames[i]),
                        std::make_shared<CounterFile>((counters.*group.counters)[i], 1, group.doc));
        }
      }
    });
  }
}

void Connections::clear_counters() {
  for (const auto& device : fabric_.devices()) cma_.manager(*device).reset_counters();
}

}  // namespace rocefs
