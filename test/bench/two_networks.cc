#include "test/bench/two_networks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

namespace rocefs::bench {
namespace {

// Network namespace of the calling thread.
Fd network() {
  return Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::unique_ptr<TwoNetworks> TwoNetworks::make() {
  auto two = std::make_unique<TwoNetworks>();
  two->own_ = network();
  for (unsigned i = 2; i-- > 0;) {
    if (::unshare(CLONE_NEWNET) != 0) return nullptr;
    two->networks_[i] = network();
  }
  auto done = [](const std::string& command) { return std::system(command.c_str()) == 0; };
  bool made = done(fmt::format(
      "ip link add veth0 mtu 4200 type veth peer name veth0 mtu 4200 netns /proc/{}/fd/{}",
      ::getpid(), two->networks_[1].get()));
  for (unsigned host = 1; host <= 2; ++host) {
    two->enter(host);
    made = made && done(fmt::format("ip addr add 10.9.0.{0}/24 dev veth0 && "
                                    "ip addr add 10.9.0.1{0}/24 dev veth0 && "
                                    "ip addr add 10.9.0.{1}/24 dev veth0 && "
                                    "ip link set veth0 up && ip link set lo up",
                                    host, host + 2));
  }
  return made ? std::move(two) : nullptr;
}

TwoNetworks::~TwoNetworks() {
  (void)::setns(own_.get(), CLONE_NEWNET);
}

void TwoNetworks::enter(unsigned host) const {
  (void)::setns(networks_[host - 1].get(), CLONE_NEWNET);
}

}  // namespace rocefs::bench
