// mgmt net: the management link to each card.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

struct Link {
  std::string host_ip, soc_ip, subnet;
};

std::string path_of(const std::string& interface, const char* file) {
  return fmt::format("class/net/{}/{}", interface, file);
}

Result<void> must_exist(const NicTree& tree, const std::string& interface) {
  std::vector<std::string> all = tree.management_interfaces();
  if (std::find(all.begin(), all.end(), interface) != all.end()) return {};
  return errorf(ENODEV, "{}: no such management interface", interface);
}

Result<Link> read_link(const NicTree& tree, const std::string& interface) {
  Link link;
  for (auto [file, value] :
       {std::pair{"host_ip", &link.host_ip}, {"soc_ip", &link.soc_ip}, {"subnet", &link.subnet}}) {
    Result<std::string> text = tree.value(path_of(interface, file));
    if (!text) return text.error();
    *value = std::move(*text);
  }
  return link;
}

struct Subnet {
  uint32_t address = 0;
  int length = 0;

  bool overlaps(const Subnet& other) const {
    int shared = std::min(length, other.length);
    return shared == 0 || (address ^ other.address) >> (32 - shared) == 0;
  }
};

std::optional<Subnet> subnet_of(const Link& link) {
  in_addr address;
  int length = std::atoi(link.subnet.c_str());
  if (::inet_pton(AF_INET, link.host_ip.c_str(), &address) != 1) return std::nullopt;
  if (length < 0 || length > 32) return std::nullopt;
  return Subnet{ntohl(address.s_addr), length};
}

struct ConfigOptions {
  std::string interface, host_ip = "192.168.10.1", soc_ip = "192.168.10.2", subnet = "24";
};

void configure(Session& session, const ConfigOptions& options) {
  const std::string& interface = options.interface;
  const NicTree& tree = session.tree();
  Result<void> done = must_exist(tree, interface);
  if (done) {
    done = tree.store_together({{path_of(interface, "host_ip"), options.host_ip},
                                {path_of(interface, "soc_ip"), options.soc_ip},
                                {path_of(interface, "subnet"), options.subnet}});
  }
  if (!done) return session.fail(done.error());
  std::optional<Subnet> ours = subnet_of({options.host_ip, options.soc_ip, options.subnet});
  for (const std::string& other : tree.management_interfaces()) {
    if (other == interface || !ours) continue;
    Result<Link> its = read_link(tree, other);
    std::optional<Subnet> theirs = its ? subnet_of(*its) : std::nullopt;
    if (theirs && ours->overlaps(*theirs)) {
      session.warn(fmt::format("{} has the subnet of {}, {}/{}", interface, other, its->host_ip,
                               its->subnet));
    }
  }
}

struct ShowOptions {
  std::string interface;
};

void show_links(Session& session, const ShowOptions& options) {
  const std::string& wanted = options.interface;
  const NicTree& tree = session.tree();
  std::vector<std::string> shown = {wanted};
  if (wanted.empty()) {
    shown = tree.management_interfaces();
  } else if (Result<void> there = must_exist(tree, wanted); !there) {
    return session.fail(there.error());
  }
  for (const std::string& interface : shown) {
    Result<Link> link = read_link(tree, interface);
    if (!link) return session.fail(link.error());
    session.print(link->host_ip.empty()
                      ? fmt::format("{}: not configured\n", interface)
                      : fmt::format("{}: host {}/{} SoC {}/{}\n", interface, link->host_ip,
                                    link->subnet, link->soc_ip, link->subnet));
    session.add({{"interface", interface},
                 {"host_ip", name_or_null(link->host_ip)},
                 {"soc_ip", name_or_null(link->soc_ip)},
                 {"subnet", link->subnet.empty() ? Json(nullptr) : number_or_text(link->subnet)}});
  }
}

}  // namespace

std::vector<Command> mgmt_commands() {
  return {
      Command{.path = "mgmt", .summary = "Management of the cards", .examples = {"mgmt net show"}},
      Command{.path = "mgmt net",
              .summary = "Management links, from the host to each card's SoC",
              .examples = {"mgmt net config mango_mgmt0 --host-ip 192.168.10.1 --soc-ip "
                           "192.168.10.2 --subnet 24",
                           "mgmt net show"}},
      CommandOf<ConfigOptions>{
          .path = "mgmt net config",
          .summary = "Set the addresses of both ends of a link",
          .manual = "Both are in one subnet. An option that is not given is stored with its "
                    "default; three "
                    "empty ones take the addresses away.",
          .examples = {"mgmt net config mango_mgmt1 --host-ip 192.168.20.1 --soc-ip 192.168.20.2 "
                       "--subnet 24"},
          .arguments = {{&ConfigOptions::interface,
                         {.name = "interface",
                          .help = "its name, mango_mgmt0",
                          .offer = Offer::kInterfaces}},
                        {&ConfigOptions::host_ip,
                         {.name = "--host-ip",
                          .value = "IP",
                          .help = "address of the host's end",
                          .may_be_empty = true}},
                        {&ConfigOptions::soc_ip,
                         {.name = "--soc-ip",
                          .value = "IP",
                          .help = "address of the card's end",
                          .may_be_empty = true}},
                        {&ConfigOptions::subnet,
                         {.name = "--subnet",
                          .value = "LENGTH",
                          .help = "bits of the subnet's prefix",
                          .may_be_empty = true}}},
          .run = configure},
      CommandOf<ShowOptions>{.path = "mgmt net show",
                             .summary = "Show the addresses of one link or all links",
                             .examples = {"mgmt net show", "--json mgmt net show"},
                             .arguments = {{&ShowOptions::interface,
                                            {.name = "interface",
                                             .help = "its name, mango_mgmt0",
                                             .offer = Offer::kInterfaces,
                                             .optional = true}}},
                             .run = show_links},
  };
}

}  // namespace rocefs
