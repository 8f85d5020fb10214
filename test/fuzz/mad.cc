// MADs from outside for a port with agents of every kind and pending requests; agents send, cancel
// and leave meanwhile. Every send ends once, and no state is left.
//
// An input is a series of records: a byte of Op, one of its argument, a length of two bytes, and as
// many bytes.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "mad_cc/port/mad_port.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;
using namespace rocefs::mad;

namespace {

enum Op : uint8_t {
  kReceive,       // the bytes, from LID `argument`
  kReceiveKnown,  // the same, with the TID of a request under way
  kAnswer,        // the last MAD transmitted, answered, with the bytes from octet 24 on
  kReturn,        // the last MAD transmitted, as it is but for octet `argument`
  kSend,          // from the agent `argument`: flags, time-out, retries, MAD
  kSendLong,      // the same, its data 16 times, RMPP active
  kCancel,        // request `argument`
  kRemove,        // the agent `argument`; one like it comes
  kPass,          // `argument` ms
  kLimits,        // max_outstanding `argument`, semantics by the bytes
  kUnbind,        // and bind
  kOps,
};

constexpr uint32_t kPeerLid = 7;

class World final : public MadCarrier, public MadUser {
 public:
  World() {
    for (size_t kind = 0; kind < kKinds; ++kind) agents_.push_back(add(kind));
  }

  void take(uint8_t op, uint8_t argument, std::span<const uint8_t> bytes) {
    Mad mad;
    std::memcpy(mad.bytes.data(), bytes.data(), std::min(bytes.size(), kMadSize));
    Address from{.lid = argument, .qpn = 1};
    switch (op % kOps) {
      case kReceive:
        return port_.receive(from, mad);
      case kReceiveKnown:
        from.lid = kPeerLid;
        mad.set_tid(last_.tid());
        return port_.receive(from, mad);
      case kAnswer:
        mad = last_;
        mad.set_method(mad.method() ^ kResponseBit);
        std::memcpy(mad.bytes.data() + 24, bytes.data(), std::min(bytes.size(), kMadSize - 24));
        from.lid = kPeerLid;
        return port_.receive(from, mad);
      case kReturn:
        mad = last_;
        mad.bytes[argument] ^= bytes.empty() ? uint8_t{0} : bytes[0];
        return port_.receive(from, mad);
      case kSend:
      case kSendLong:
        return send(argument, bytes, op % kOps == kSendLong);
      case kCancel:
        return port_.cancel(agents_[argument % kKinds], argument);
      case kRemove:
        port_.remove_agent(agents_[argument % kKinds]);
        std::erase_if(expected_, [&](const auto& send) {
          return send.first.first == agents_[argument % kKinds];
        });
        agents_[argument % kKinds] = add(argument % kKinds);
        return;
      case kPass:
        scheduler_.run_until(scheduler_.now() + argument * kMillisecond);
        return;
      case kLimits:
        return port_.configure_limiter(
            {static_cast<MadSemantics>(mad.bytes[0] % 3), argument, mad.bytes[1], mad.bytes[2]});
      case kUnbind:
        port_.leave();
        fuzz::require(expected_.empty());
        port_.arrive();
        for (size_t kind = 0; kind < kKinds; ++kind) agents_[kind] = add(kind);
        return;
    }
  }
  // Longer than any time-out.
  void finish() {
    scheduler_.run_until(scheduler_.now() + 300 * kSecond);
    fuzz::require(expected_.empty());
    fuzz::require(port_.sends_under_way() == 0);
    fuzz::require(port_.reassemblies() == 0);
    fuzz::require(port_.limiter().counters().outstanding.get() == 0);
    fuzz::require(port_.limiter().counters().queued.get() == 0);
    fuzz::require(scheduler_.next() == kNever);
  }

 private:
  static constexpr size_t kKinds = 8;

  uint32_t add(size_t kind) {
    MadRegistration r;
    constexpr uint8_t kClasses[kKinds] = {kSubnAdm, kSubnAdm, kSubnAdm,      kDeviceMgt,
                                          kPerf,    0x30,     kSubnDirected, 0};
    r.mgmt_class = kClasses[kind];
    r.class_version = kind < 3 ? 2 : 1;
    r.qpn = is_smp(r.mgmt_class) ? 0 : 1;
    r.rmpp_version = has_rmpp(r.mgmt_class) && kind != 1 ? 1 : 0;
    r.user_rmpp = kind == 2;
    if (r.mgmt_class == 0x30) r.oui = 0x1405;
    if (kind == 0 || kind > 2) {
      for (size_t method : {kGet, kSet, kTrap, kGetTable, kGetMulti})
        if (r.mgmt_class != 0) r.methods.set(method);
    }
    Result<uint32_t> id = port_.add_agent(r, *this);
    fuzz::require(bool(id));
    return *id;
  }

  void send(uint8_t argument, std::span<const uint8_t> bytes, bool is_long) {
    if (bytes.size() < 3) return;
    uint32_t agent = agents_[argument % kKinds];
    MadSend send;
    send.request = argument;
    send.timeout_ms = bytes[0] % 2 != 0 ? bytes[1] : 0;
    send.retries = bytes[2] % 4;
    bytes = bytes.subspan(3);
    send.message.assign(bytes.begin(), bytes.end());
    if (is_long) {
      send.message.resize(kMadSize);
      send.message[25] = kRmppData;
      send.message[26] |= kRmppActive;
      for (int times = 0; times < 16; ++times)
        send.message.insert(send.message.end(), bytes.begin(), bytes.end());
    }
    send.to.lid = kPeerLid;
    send.to.qpn =
        !send.message.empty() && send.message.size() > 1 && is_smp(send.message[1]) ? 0 : 1;
    if (port_.send(agent, std::move(send)))
      fuzz::require(expected_.emplace(std::pair(agent, argument), true).second);
  }

  void over(uint32_t agent, uint64_t request) {
    fuzz::require(expected_.erase({agent, request}) == 1);
  }
  void transmit(MadReceiver&, const Address&, const Mad& mad) override { last_ = mad; }
  void received(uint32_t agent, std::optional<uint64_t> request, const Address&,
                Message message) override {
    fuzz::require(std::find(agents_.begin(), agents_.end(), agent) != agents_.end());
    fuzz::require(message.size() >= data_offset(0));
    if (request) over(agent, *request);
  }
  void ended(uint32_t agent, uint64_t request, End) override { over(agent, request); }

  Scheduler scheduler_;
  MadPort port_{*this, scheduler_};
  std::vector<uint32_t> agents_;  // by kind
  std::map<std::pair<uint32_t, uint64_t>, bool> expected_;
  Mad last_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::span<const uint8_t> input(data, size);
  for (int record = 0; record < 64 && input.size() >= 4; ++record) {
    size_t length = std::min<size_t>(input[2] << 8 | input[3], input.size() - 4);
    world.take(input[0], input[1], input.subspan(4, length));
    input = input.subspan(4 + length);
  }
  world.finish();
  return 0;
}
