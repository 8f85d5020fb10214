#include "rdma/tree/port_files.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include "core/base/port_speed.h"
#include "core/tree/counter_files.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_file.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

using Text = Result<std::string>;

constexpr KnobRow kPortKnobs[] = {
    {"hw_counters/lifespan", KnobType::kDecimal, 0, 10000, "10", "", "ms",
     "real clock: how long values read from hw_counters are shown again; 0: always current"},
};

// Counters of the standard, and those that readers of counters/ expect, which are always 0 here: no
// symbols, credits, relays, partitions to enforce or VL 15.
constexpr const char* kConstantCounters[] = {
    "symbol_error",
    "link_error_recovery",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
};

std::string gid_text(const Ip& gid) {
  std::string text;
  for (size_t i = 0; i < gid.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i ? ":" : "", gid[i], gid[i + 1]);
  }
  return text;
}

// The actual rate, with the name of the slowest link that carries it.
std::string rate_text(uint64_t bps) {
  return fmt::format("{:g} Gb/sec ({})", static_cast<double>(bps) / 1e9, port_speed(bps).name);
}

// hw_counters/ of one port. As in ib_core, all are read together, and the values are shown for a
// lifespan.
class HwCounters {
 public:
  HwCounters(const PortCounters& counters, const Engine& engine, std::shared_ptr<KnobSet> knobs)
      : counters_(counters), engine_(engine), knobs_(std::move(knobs)) {}

  uint64_t value(size_t row) {
    constexpr size_t kLifespan = knob_index(kPortKnobs, "hw_counters/lifespan");
    auto lifespan =
        static_cast<TimeNs>(std::get<uint64_t>(knobs_->value(kLifespan))) * kMillisecond;
    bool fresh = engine_.mode() == ClockMode::kVirtual || lifespan == 0;
    TimeNs now = fresh ? 0 : monotonic_ns();
    if (fresh || read_at_ == kNever || now >= read_at_ + lifespan) read(fresh ? kNever : now);
    return values_[row];
  }
  void forget() { read_at_ = kNever; }

 private:
  void read(TimeNs now) {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = (counters_.*kPortCounters[i].member).get() / kPortCounters[i].divisor;
    }
    read_at_ = now;
  }

  const PortCounters& counters_;
  const Engine& engine_;
  const std::shared_ptr<KnobSet> knobs_;
  std::array<uint64_t, std::size(kPortCounters)> values_{};
  TimeNs read_at_ = kNever;
};

// File of one counter.
class HwCounterFile final : public CounterFile {
 public:
  HwCounterFile(std::shared_ptr<HwCounters> all, size_t row, Counter& counter)
      : CounterFile(counter, 1, kPortCounters[row].doc), all_(std::move(all)), row_(row) {}
  uint64_t value() override { return all_->value(row_); }
  void cleared() override { all_->forget(); }

 private:
  const std::shared_ptr<HwCounters> all_;
  const size_t row_;
};

void fixed(Tree& tree, const std::string& path, std::string text, std::string_view doc) {
  tree.add_file(path, constant(std::move(text), doc));
}

void add_counters(Tree& tree, const std::string& directory, PortCounters& counters,
                  Engine& engine) {
  auto knobs = std::make_shared<KnobSet>(kPortKnobs, engine, nullptr);
  add_knob_files(tree, directory, knobs);
  auto hw_counters = std::make_shared<HwCounters>(counters, engine, knobs);
  for (size_t i = 0; i < std::size(kPortCounters); ++i) {
    const CounterRow<PortCounters>& row = kPortCounters[i];
    if (row.path.starts_with("hw_counters/")) {
      tree.add_file(fmt::format("{}/{}", directory, row.path),
                    std::make_shared<HwCounterFile>(hw_counters, i, counters.*row.member));
    } else {
      add_counter_file(tree, directory, row, counters);
    }
  }
  for (const char* name : kConstantCounters) {
    fixed(tree, directory + "/counters/" + name, "0", "counter of the standard; always 0 here");
  }
}

void add_gids(Tree& tree, const std::string& directory, const Port& port, PortLink& link) {
  for (size_t i = 0; i < kGidTableLen; ++i) {
    tree.add_file(fmt::format("{}/gids/{}", directory, i),
                  link.file([i](const PortLink& at) { return gid_text(at.port().shown().gids[i]); },
                            "GID: 0 link-local, 1 IPv4, 2 IPv6 where there is one, then those of "
                            "further addresses; all zero: empty"));
    auto attribute = [&](const char* name, const std::string& value, std::string_view doc) {
      auto show = [&port, i, value]() -> Text {
        if (port.shown().gids[i] == Ip{}) return Error{EINVAL, "this GID table entry is empty"};
        return value;
      };
      tree.add_file(fmt::format("{}/gid_attrs/{}/{}", directory, name, i), read_only(show, doc));
    };
    attribute("types", "RoCE v2", "the GID's type; EINVAL for an empty entry");
    attribute("ndevs", port.spec().netdev, "the GID's interface; EINVAL for an empty entry");
  }
}

}  // namespace

std::shared_ptr<PortLink> PortLink::create(Port& port, std::shared_ptr<KnobSet> egress,
                                           std::shared_ptr<KnobSet> ingress) {
  std::shared_ptr<PortLink> link(new PortLink(port, std::move(egress), std::move(ingress)));
  auto changed = [weak = std::weak_ptr(link)] {
    if (auto alive = weak.lock()) alive->changed();
  };
  for (const auto& knobs : {link->egress_, link->ingress_}) knobs->on_change(changed);
  port.on_network(changed);
  return link;
}

bool PortLink::up() const {
  bool cable =
      Link::parameters_of(egress_->values()).up && Link::parameters_of(ingress_->values()).up;
  return cable && port_.carrier();
}

uint64_t PortLink::rate_bps() const {
  return Link::parameters_of(egress_->values()).rate_bps;
}

std::shared_ptr<Attribute> PortLink::file(std::function<std::string(const PortLink&)> text,
                                          std::string_view doc) {
  auto file = read_only([this, text]() -> Text { return text(*this); }, doc);
  std::erase_if(followers_, [](const Follower& follower) { return follower.file.expired(); });
  followers_.push_back({file, text, text(*this)});
  return file;
}

void PortLink::changed() {
  for (Follower& follower : followers_) {
    std::string now = follower.text(*this);
    auto file = follower.file.lock();
    if (std::exchange(follower.last, now) != now && file) file->notify();
  }
}

void add_port_files(Tree& tree, const std::string& directory, Port& port, Engine& engine,
                    const std::shared_ptr<PortLink>& link) {
  tree.add_file(directory + "/state",
                link->file([](const PortLink& at) { return at.up() ? "4: ACTIVE" : "1: DOWN"; },
                           "4: ACTIVE, or 1: DOWN"));
  tree.add_file(directory + "/phys_state",
                link->file([](const PortLink& at) { return at.up() ? "5: LinkUp" : "3: Disabled"; },
                           "5: LinkUp, or 3: Disabled"));
  tree.add_file(directory + "/rate",
                link->file([](const PortLink& at) { return rate_text(at.rate_bps()); },
                           "rate of the link, in InfiniBand's terms"));
  fixed(tree, directory + "/link_layer", "Ethernet", "RoCE runs over Ethernet");
  fixed(tree, directory + "/lid", fmt::format("0x{:x}", port.lids().own),
        "local identifier, for management datagrams only: RoCE packets have no LIDs");
  fixed(tree, directory + "/lid_mask_count", "0", "0: one LID a port");
  tree.add_file(directory + "/sm_lid",
                read_only([&port]() -> Text { return fmt::format("0x{:x}", port.lids().manager); },
                          "local identifier of the subnet's manager"));
  fixed(tree, directory + "/sm_sl", "0", "service level of the subnet's manager");
  fixed(tree, directory + "/cap_mask", fmt::format("0x{:08x}", kPortCapabilities),
        "CM supported, GIDs from IP addresses");
  fixed(tree, directory + "/pkeys/0", "0xffff", "the default partition, full member");
  add_gids(tree, directory, port, *link);
  add_counters(tree, directory, port.counters(), engine);
}

void add_interface_files(Tree& tree, const std::string& directory, Port& port,
                         const std::shared_ptr<PortLink>& link) {
  const PortSpec& spec = port.spec();
  fixed(tree, directory + "/address", fmt::format("{:02x}", fmt::join(spec.mac, ":")), "the MAC");
  fixed(tree, directory + "/addr_len", "6", "octets of the MAC");
  fixed(tree, directory + "/broadcast", "ff:ff:ff:ff:ff:ff", "the broadcast MAC");
  fixed(tree, directory + "/type", "1", "ARPHRD_ETHER");
  fixed(tree, directory + "/dev_id", "0x0", "0x0: the only one with this MAC");
  fixed(tree, directory + "/dev_port", fmt::format("{}", port.number() - 1),
        "the port of the device, from 0");
  fixed(tree, directory + "/flags", "0x1003", "up, broadcast, multicast");
  tree.add_file(directory + "/mtu",
                link->file(
                    [](const PortLink& at) {
                      const Port& its = at.port();
                      uint32_t mtu = its.shown().interface_mtu;
                      return fmt::format("{}", mtu ? mtu : its.mtu() + kRoceHeaders);
                    },
                    "MTU of the interface: the path MTU plus the longest headers"));
  fixed(tree, directory + "/uevent", "INTERFACE=" + spec.netdev,
        "variables of the interface for udev");
  tree.add_file(
      directory + "/operstate",
      link->file([](const PortLink& at) { return at.up() ? "up" : "down"; }, "up or down"));
  tree.add_file(directory + "/carrier",
                link->file([](const PortLink& at) { return at.up() ? "1" : "0"; }, "1 or 0"));
  // Unknown without a carrier (ethtool's SPEED_UNKNOWN and DUPLEX_UNKNOWN).
  tree.add_file(directory + "/duplex",
                link->file([](const PortLink& at) { return at.up() ? "full" : "unknown"; },
                           "full; unknown without a carrier"));
  tree.add_file(directory + "/speed",
                link->file(
                    [](const PortLink& at) {
                      return at.up() ? fmt::format("{}", at.rate_bps() / 1'000'000) : "-1";
                    },
                    "Mbit/s; -1 without a carrier"));
  add_counter_files(tree, directory + "/statistics", kInterfaceCounters, port.interface_counters());
}

}  // namespace rocefs
