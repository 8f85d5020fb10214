// UplinkAddresses: the machine's addresses that ports behind an uplink have. It binds a socket to
// UDP port 4791 of each, and follows what becomes of the address and its interface: a port of whose
// addresses none can be used has no carrier, and its MTU is what all of its interfaces carry.
//
// On the control thread, or before the engine starts, but for what says otherwise.
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

// The addresses that were the machine's when a mount was made, for those that take it over: more
// than these are taken for the machine's. In memory that outlives a worker.
struct SavedAddresses {
  static constexpr size_t kMaxAddresses = 64;
  uint32_t count;
  Ip ours[kMaxAddresses];
};

class UplinkAddresses {
 public:
  struct Parts {
    Engine& engine;
    PollLoop& loop;
    // Receives at the address from now on.
    std::function<void(const Ip& address, Fd socket)> bound;
    // Receives there no more.
    std::function<void(const Ip& address)> unbound;
    std::function<void(const std::string&)> warn;
    Counter& failures;  // of bind(2), after the start
  };
  struct Served {
    Ip address;
    UplinkedPort* port;
  };
  UplinkAddresses(Parts parts, const std::vector<Served>& served);
  ~UplinkAddresses();

  // Once. Which of the addresses are the machine's is kept in `saved` (null: nowhere); others stay
  // inside. EADDRNOTAVAIL: none is; EADDRINUSE.
  Result<void> start(const std::string& uplink, SavedAddresses* saved);
  // Once, instead: where a mount is taken over. Those that are in `saved` (null: all) are the
  // machine's, whatever becomes of them.
  void take_over(const SavedAddresses* saved);

  // The uplink could not go on receiving there, for this errno: tried again in a second.
  void lost(const Ip& address, int code);
  // Those that sockets are bound to. Any thread.
  std::vector<Ip> bound() const;
  // Those that are the machine's, whether they can be used at present or not.
  std::vector<Ip> ours() const;

 private:
  struct Address {
    Ip ip;
    UplinkedPort* port;
    bool ours = false;
    bool bound = false;
    std::string trouble;  // why it cannot be used; empty: it can
    uint32_t mtu;         // that its interface carries, at most the port's
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
