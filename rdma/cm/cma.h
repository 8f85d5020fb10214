// Cma: connections by IP address, as rdma_cm makes them (drivers/infiniband/core/cma.c), over all
// devices of a fabric: ports by address, listeners, port numbers in use.
//
// Core thread. Outlives its ids.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rdma/cm/id.h"
#include "rdma/cm/manager.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Search for a neighbour in the kernel's networks.
struct CmSearch {
  uint64_t id = 0;  // serial number of the rdma_cm id
  uint32_t attempt = 0;
  const PortHost* host = nullptr;  // device of the host whose network it is; null: the mount's own
  Ip source{}, destination{};
  TimeNs patience = 0;
};

class Cma final : public CmIdHost, public CmAcceptor {
 public:
  // `salt` as in CmManager.
  Cma(Fabric& fabric, uint64_t salt);
  ~Cma() override;

  Fabric& fabric() { return fabric_; }
  Scheduler& scheduler() override { return fabric_.scheduler(); }
  // Before the engine starts. `search` begins a search, on the core's thread, and answered() ends
  // it. Without one every address outside the fabric counts as known.
  void search_by(std::function<void(const CmSearch&)> search) { search_ = std::move(search); }
  void answered(const CmSearch& search, int error);
  CmManager& manager(const PortHost& device) override;

  // One line per id, as in `rdma resource show cm_id`.
  std::string text() const;
  // Adds a line of the id, with these values, to the text of kernel/debug/rocefs/resources.
  void add_resource(const CmId& id, std::string_view values, std::string& text) const;

  uint64_t add(CmId& id) override;
  void remove(CmId& id) override;
  Result<void> bind(CmId& id, CmAddress& address) override;
  Result<void> listen(CmId& id) override;
  void stop_listening(CmId& id) override;
  Port* port_at(const Ip& address, const CmScope& scope) const override;
  CmWay resolve(CmAddress& source, CmAddress& destination, const CmScope& scope) override;
  void search(const CmId& id, uint32_t attempt, const Ip& source, const Ip& destination,
              TimeNs patience) override;

  uint16_t requested(CmConnection& connection) override;
  uint8_t asked(Sidr& question) override;

 private:
  using Numbers = std::multimap<uint32_t, CmId*>;  // by port space and number
  struct Ends {
    CmAddress local, remote;
    size_t header = 0;  // octets of the private data
  };

  bool is_free(const CmId& id, const CmAddress& address) const;
  CmId* listener(uint64_t service_id, const Port& port, const Ip& address, bool datagrams);
  std::optional<Ends> ends_of(const CmId& listener, const AddressVector& path,
                              std::span<const uint8_t> private_data) const;
  Port* resolve_group(CmAddress& source, const CmAddress& group, const CmScope& scope);
  CmWay resolve_own(CmAddress& source, CmAddress& destination, const CmScope& scope);
  bool is_wildcard(const CmAddress& address, const CmScope& scope) const;
  bool is_on_uplink(const CmAddress& address, const CmScope& scope) const;
  std::optional<Ip> source_at(Port& port, const Ip& destination) const;
  CmWay::Reach reach_of(const Ip& source, const Ip& destination, const CmScope& scope) const;
  void device_left(const Device& device);

  Fabric& fabric_;
  std::function<void(const CmSearch&)> search_;
  std::vector<std::unique_ptr<CmManager>> managers_;
  std::unordered_map<const PortHost*, CmManager*> by_device_;
  uint64_t last_serial_ = 0;
  std::map<uint64_t, CmId*> ids_;  // the oldest first
  Numbers numbers_;
  std::multimap<uint64_t, CmId*> listeners_;  // by service
  uint16_t next_number_;
};

}  // namespace rocefs
