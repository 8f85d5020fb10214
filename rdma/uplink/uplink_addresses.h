// UplinkAddresses: the machine's addresses that ports behind an uplink have. Binds a socket to UDP
// port 4791 of each, and watches the address and its interface: a port without any usable address
// has no carrier, and its MTU is what all of its interfaces carry.
//
// Control thread, or before the engine starts, unless stated otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/fabric/uplinked_port.h"
#include "rdma/uplink/interface.h"

namespace rocefs {

// The machine's addresses when the mount was made, for a takeover: addresses beyond kMaxAddresses
// are assumed to be the machine's. In memory that outlives a worker.
struct SavedAddresses {
  static constexpr size_t kMaxAddresses = 64;
  uint32_t count;
  Ip ours[kMaxAddresses];
};
// Name of an uplink in reasons. That of the mount option is called uplink.
std::string uplink_said(const std::string& name);

class UplinkAddresses {
 public:
  struct Parts {
    Engine& engine;
    PollLoop& loop;
    // Called when an address was bound: receive at it.
    std::function<void(const Ip& address, Fd socket)> bound;
    // Called when an address is no longer bound.
    std::function<void(const Ip& address)> unbound;
    // Called when interfaces or addresses may have changed.
    std::function<void()> changed;
    std::function<void(const std::string&)> warn;
    Counter& failures;  // failures of bind(2) after the start
  };
  struct Served {
    Ip address;
    UplinkedPort* port;
  };
  UplinkAddresses(Parts parts, const std::vector<Served>& served);
  ~UplinkAddresses();

  // Once. Saves the machine's addresses in `saved` (null: nowhere); others stay inside.
  // EADDRNOTAVAIL: there is none; EADDRINUSE.
  Result<void> start(const std::string& uplink, SavedAddresses* saved);
  // Once, instead of start(), at a takeover. The addresses in `saved` (null: all) count as the
  // machine's, whatever their state.
  void take_over(const SavedAddresses* saved);

  // Reception at the address has ended with this errno: binding is retried in a second.
  void lost(const Ip& address, int code);
  // Addresses with a bound socket. Any thread.
  std::vector<Ip> bound() const;
  // The machine's addresses, usable or not.
  std::vector<Ip> ours() const;

 private:
  struct Address {
    Ip ip;
    UplinkedPort* port;
    bool ours = false;
    bool bound = false;
    std::string trouble;  // reason why it cannot be used; empty: usable
    uint32_t mtu;         // MTU of the interface, at most the port's
  };

  void look();
  void report(std::vector<std::string> lines);
  std::string try_to_use(Address& address);
  void take(Address& address, Fd socket);
  void set_bound(Address& address, bool bound);
  std::vector<std::string> follow_mtus();
  bool carrier_of(const UplinkedPort& port) const;
  uint32_t mtu_of(const UplinkedPort& port) const;

  Parts parts_;
  std::vector<Address> all_;
  mutable std::mutex binding_;  // Address::bound
  std::unique_ptr<InterfaceWatch> watch_;
  LoopTimer again_;
};

}  // namespace rocefs
