// SubnetSettings: the values that subnet managers have written into the nodes of a subnet by
// SubnSet, and the ports whose subnet manager is a program. The emulator has configured the subnet,
// so there are none at first, and what is not written is what the fabric is.
//
// Core thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace rocefs {

class SubnetSettings {
 public:
  using Octets = std::array<uint8_t, 64>;  // data of an SMP

  // Returns the attribute as it was written last, null if it was not.
  const Octets* find(size_t node, uint16_t attribute, uint32_t modifier) const {
    if (written_.empty()) return nullptr;
    auto it = written_.find({node, attribute, modifier});
    return it == written_.end() ? nullptr : &it->second;
  }
  void write(size_t node, uint16_t attribute, uint32_t modifier, const Octets& octets) {
    written_[{node, attribute, modifier}] = octets;
  }
  // Whether its ports were up when a manager last cleared PortStateChange of a switch; null before.
  using States = std::vector<bool>;
  const States* seen(size_t node) const {
    auto it = seen_.find(node);
    return it == seen_.end() ? nullptr : &it->second;
  }
  void set_seen(size_t node, States states) { seen_[node] = std::move(states); }
  void clear() {
    written_.clear();
    seen_.clear();
  }

  // Ports that say IsSM. The emulated manager is active while there is none.
  bool is_manager(size_t node, uint8_t port) const { return managers_.count({node, port}) != 0; }
  bool emulated_manager() const { return managers_.empty(); }
  void add_manager(size_t node, uint8_t port) { managers_.insert({node, port}); }
  void remove_manager(size_t node, uint8_t port) { managers_.erase({node, port}); }

 private:
  struct Key {
    size_t node;
    uint16_t attribute;
    uint32_t modifier;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Octets> written_;
  std::map<size_t, States> seen_;
  std::set<std::pair<size_t, uint8_t>> managers_;
};

}  // namespace rocefs
