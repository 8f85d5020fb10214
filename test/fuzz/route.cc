// Messages of rtnetlink from the network namespace of a host.
#include <string_view>

#include "rdma/host/route_messages.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

class Listener final : public RouteListener {
 public:
  void link_is(int, std::string_view name, bool, uint32_t) override {
    fuzz::require(name.find('\0') == name.npos);
  }
  void link_gone(int) override {}
  void address_is(int, const Ip&) override {}
  void address_gone(int, const Ip&) override {}
  void dump_ended() override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Listener listener;
  read_route_messages({data, size}, listener);
  return 0;
}
