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

std::vector<std::string> interfaces(const NicTree& tree) {
  std::vector<std::string> names = tree.counted("class/net");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("mango_mgmt"); });
  return names;
}

Result<void> must_exist(const NicTree& tree, const std::string& interface) {
  std::vector<std::string> all = interfaces(tree);
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

void configure(Session& session, const std::string& interface, const Link& link) {
  const NicTree& tree = session.tree();
  Result<void> done = must_exist(tree, interface);
  if (done) {
    done = tree.store_together({{path_of(interface, "host_ip"), link.host_ip},
                                {path_of(interface, "soc_ip"), link.soc_ip},
                                {path_of(interface, "subnet"), link.subnet}});
  }
  if (!done) return session.fail(done.error());
  std::optional<Subnet> ours = subnet_of(link);
  for (const std::string& other : interfaces(tree)) {
    if (other == interface || !ours) continue;
    Result<Link> its = read_link(tree, other);
    std::optional<Subnet> theirs = its ? subnet_of(*its) : std::nullopt;
    if (theirs && ours->overlaps(*theirs)) {
      session.warn(fmt::format("{} has the subnet of {}, {}/{}", interface, other, its->host_ip,
                               its->subnet));
    }
  }
}

void show_mgmt(Session& session, const std::string& wanted) {
  const NicTree& tree = session.tree();
  std::vector<std::string> shown = {wanted};
  if (wanted.empty()) {
    shown = interfaces(tree);
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

void add_mgmt_commands(CommandLine& line) {
  CLI::App& mgmt = line.group(line.root(), "mgmt", "management of the cards", "mgmt net show");
  CLI::App& net = line.group(mgmt, "net", "the link between the host and a card's SoC",
                             "mgmt net config mango_mgmt0 --host-ip 192.168.10.1 --soc-ip "
                             "192.168.10.2 --subnet 24\nmgmt net show");

  auto interface = line.options<std::string>();
  auto link = line.options<Link>(Link{"192.168.10.1", "192.168.10.2", "24"});
  CLI::App& config =
      line.command(net, "config", "give both ends their addresses, in one subnet",
                   "mgmt net config mango_mgmt1 --host-ip 192.168.20.1 --soc-ip 192.168.20.2 "
                   "--subnet 24",
                   [=](Session& session) { configure(session, *interface, *link); });
  config.add_option("interface", *interface, "mango_mgmt0 …")->required()->type_name("");
  for (auto [option, value, type] : {std::tuple{"--host-ip", &link->host_ip, "IP"},
                                     {"--soc-ip", &link->soc_ip, "IP"},
                                     {"--subnet", &link->subnet, "LENGTH"}}) {
    config.add_option(option, *value)->type_name(type)->capture_default_str();
  }

  auto shown = line.options<std::string>();
  CLI::App& show_command = line.command(net, "show", "the addresses of one or all",
                                        "mgmt net show\n--json mgmt net show",
                                        [=](Session& session) { show_mgmt(session, *shown); });
  show_command.add_option("interface", *shown, "mango_mgmt0 …")->type_name("");
}

}  // namespace rocefs
