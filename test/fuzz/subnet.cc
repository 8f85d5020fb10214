// MADs of any octets between the ports of a small subnet, whose cables and devices come and go: the
// agents of its nodes, its administrator and its routes. Every request ends some time later.
//
// An input is a row of records: a byte of Op, one of its argument, four of an address (LID, QPN,
// whether it has the Q_Key), a length of one byte and as many octets of a MAD; the rest of it is 0.
#include <algorithm>
#include <span>

#include "mad_cc/net/mad_network.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/sa/sa.h"
#include "test/fuzz/fuzz.h"
#include "test/mad_cc/net/two_switches.h"

using namespace rocefs;

namespace {

enum Op : uint8_t {
  kSendNear,
  kSendFar,
  kAnswer,  // the last MAD, from the far port as if it were the answer
  kCable,   // port `argument` of a switch
  kDevice,  // goes or comes
  kSettings,
  kPass,  // `argument` ms
  kReset,
  kOps,
};

template <class Set, class Value>
void toggle(Set& set, const Value& value) {
  if (set.erase(value) == 0) set.insert(value);
}

class World {
 public:
  World() {
    network_.attach_administrator(administrator_);
    network_.attach({kMb0, 1}, near_);
    network_.attach({kMb1, 1}, far_);
  }

  void take(uint8_t op, uint8_t argument, const mad::Address& to, const mad::Mad& mad) {
    switch (op % kOps) {
      case kSendNear:
        last_ = mad;
        return network_.transmit(near_, to, mad);
      case kSendFar:
        last_ = mad;
        return network_.transmit(far_, to, mad);
      case kAnswer:
        last_.set_method(last_.method() | mad::kResponseBit);
        return network_.transmit(far_, to, last_);
      case kCable:
        return toggle(state_.down, std::pair(argument & 0x80 ? kLowerSwitch : kUpperSwitch,
                                             static_cast<uint8_t>(1 + (argument & 0x7f) % 3)));
      case kDevice:
        return toggle(state_.absent, argument % 2 ? kMb0 : kMb1);
      case kSettings:
        return administrator_.configure(
            {argument * kMillisecond, mad.bytes[0] / 255.0, mad.bytes[1] / 255.0});
      case kPass:
        scheduler_.run_until(scheduler_.now() + argument * kMillisecond);
        return;
      case kReset:
        network_.reset();
        administrator_.reset();
        return;
    }
  }
  void finish() {
    scheduler_.run_until(scheduler_.now() + 3600 * kSecond);
    fuzz::require(administrator_.pending() == 0);
    fuzz::require(scheduler_.next() == kNever);
  }

 private:
  Subnet subnet_ = two_switches();
  SetState state_{subnet_};
  Scheduler scheduler_;
  MadNetwork network_{subnet_, state_, scheduler_};
  SubnetAdministrator administrator_{subnet_, state_, scheduler_, 1, network_};
  MadPort near_{network_, scheduler_}, far_{network_, scheduler_};
  mad::Mad last_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 7;
  World world;
  std::span<const uint8_t> rest(data, size);
  while (rest.size() >= kHead) {
    mad::Address to{.lid = wire::load16(&rest[2]), .qpn = rest[4]};
    to.qkey = rest[5] % 2 != 0 ? mad::kQkey : 0;
    uint8_t op = rest[0], argument = rest[1];
    size_t length = std::min<size_t>(rest[6], rest.size() - kHead);
    mad::Mad mad;
    std::copy_n(rest.begin() + kHead, length, mad.bytes.begin());
    rest = rest.subspan(kHead + length);
    world.take(op, argument, to, mad);
  }
  world.finish();
  return 0;
}
