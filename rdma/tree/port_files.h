// Files of one port: below infiniband/<device>/ports/<n>, and its interface's below net/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"
#include "rdma/nic/port.h"

namespace rocefs {

// Knobs of a port's cable, as the control thread sees them.
class PortLink {
 public:
  // Both directions, as seen from the port.
  static std::shared_ptr<PortLink> create(Port& port, std::shared_ptr<KnobSet> egress,
                                          std::shared_ptr<KnobSet> ingress);

  bool up() const;
  uint64_t rate_bps() const;
  const Port& port() const { return port_; }
  // A file whose text depends on the cable's knobs; pollers are woken when the text changes.
  std::shared_ptr<Attribute> file(std::function<std::string(const PortLink&)> text,
                                  std::string_view doc);

 private:
  struct Follower {
    std::weak_ptr<Attribute> file;
    std::function<std::string(const PortLink&)> text;
    std::string last;
  };

  PortLink(const Port& port, std::shared_ptr<KnobSet> egress, std::shared_ptr<KnobSet> ingress)
      : port_(port), egress_(std::move(egress)), ingress_(std::move(ingress)) {}
  void changed();

  const Port& port_;
  const std::shared_ptr<KnobSet> egress_, ingress_;
  std::vector<Follower> followers_;
};

// Port and engine outlive the tree.
void add_port_files(Tree& tree, const std::string& directory, Port& port, Engine& engine,
                    const std::shared_ptr<PortLink>& link);
void add_interface_files(Tree& tree, const std::string& directory, Port& port,
                         const std::shared_ptr<PortLink>& link);

}  // namespace rocefs
