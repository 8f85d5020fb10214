// MADs of any kind for an administrator whose subnet changes meanwhile.
//
// An input is a row of records: an octet of Kind, whose upper half is a client's, an octet of
// length, as many octets.
#include "mad_cc/sa/sa.h"

#include <algorithm>
#include <optional>
#include <span>

#include "mad_cc/sa/sa_records.h"
#include "test/fuzz/fuzz.h"
#include "test/mad_cc/net/small_subnet.h"

using namespace rocefs;

namespace {

enum Kind : uint8_t {
  kRequest,  // method, attribute, ComponentMask, first octet of the modifier, data
  kRaw,      // a MAD as it is
  kAnswer,   // RMPP type, flags, status, segment, window: to what came last
  kTime,     // milliseconds * 10
  kState,    // a node that is absent; a node, its port, and its rate; 0: all is well
  kSettings,
  kReset,
  kAcknowledge,  // all that came, as they should be
};
constexpr uint8_t kAttributes[] = {0x01, 0x03, 0x11, 0x12, 0x14, 0x15, 0x18,
                                   0x20, 0x30, 0x31, 0x35, 0x38, 0xf3};

class World final : MadCarrier {
 public:
  void take(uint8_t kind, std::span<const uint8_t> bytes) {
    uint16_t lid = kind >> 4;
    switch (kind & 7) {
      case kRequest:
        return request(lid, bytes);
      case kRaw: {
        mad::Mad mad;
        std::copy_n(bytes.begin(), bytes.size(), mad.bytes.begin());
        return hear(lid, mad);
      }
      case kAnswer:
        if (last_) answer(lid, bytes);
        return;
      case kTime:
        return pass(at(bytes, 0) * 10 * kMillisecond);
      case kState:
        return change(bytes);
      case kSettings:
        return administrator_.configure(
            {at(bytes, 0) * kMillisecond, at(bytes, 1) / 255.0, at(bytes, 2) / 255.0});
      case kReset:
        return administrator_.reset();
      case kAcknowledge:
        for (const mad::Mad& mad : std::exchange(arrived_, {})) acknowledge(lid, mad);
    }
  }
  // All that is pending is answered or given up.
  void end() {
    administrator_.configure({});
    scheduler_.run_until(scheduler_.now() + 600 * kSecond);
    fuzz::require(administrator_.pending() == 0);
  }
  void pass(TimeNs duration) {
    scheduler_.run_until(scheduler_.now() + duration);
    fuzz::require(administrator_.pending() <= SubnetAdministrator::kMaxRequests);
  }

 private:
  static uint8_t at(std::span<const uint8_t> bytes, size_t i) {
    return i < bytes.size() ? bytes[i] : 0;
  }
  void hear(uint16_t lid, const mad::Mad& mad) {
    administrator_.receive({lid, 1, mad::kQkey, 0, 0, 0}, mad);
  }
  void request(uint16_t lid, std::span<const uint8_t> bytes) {
    mad::Mad mad;
    mad.bytes[0] = 1;
    mad.bytes[1] = mad::kSubnAdm;
    mad.bytes[2] = 2;
    mad.set_method(at(bytes, 0));
    mad.set_tid(++tid_ % 64);
    mad.bytes[17] = kAttributes[at(bytes, 1) % std::size(kAttributes)];
    for (size_t i = 0; i < 8; ++i) mad.bytes[48 + i] = at(bytes, 2 + i);
    mad.bytes[20] = at(bytes, 10);
    for (size_t i = 11; i < bytes.size() && i < 211; ++i) mad.bytes[45 + i] = bytes[i];
    hear(lid, mad);
  }
  void answer(uint16_t lid, std::span<const uint8_t> bytes) {
    mad::Mad mad = *last_;
    mad.set_method(mad.method() ^ mad::kResponseBit);
    mad.set_rmpp(at(bytes, 0), at(bytes, 1), at(bytes, 2),
                 mad.rmpp_segment() + static_cast<int8_t>(at(bytes, 3)),
                 mad.rmpp_segment() + static_cast<uint32_t>(static_cast<int8_t>(at(bytes, 4))));
    hear(lid, mad);
  }
  void acknowledge(uint16_t lid, mad::Mad mad) {
    if (mad.rmpp_type() != mad::kRmppData) return;
    uint32_t segment = mad.rmpp_segment();
    mad.set_method(mad.method() ^ mad::kResponseBit);
    mad.set_rmpp(mad::kRmppAck, mad::kRmppActive, 0, segment, segment + 3);
    hear(lid, mad);
  }
  void change(std::span<const uint8_t> bytes) {
    size_t node = at(bytes, 0) % subnet_.nodes.size();
    if (bytes.empty()) {
      state_.absent.clear();
      state_.down.clear();
    } else if (bytes.size() == 1) {
      state_.absent.insert(node);
    } else {
      state_.down.insert({node, at(bytes, 1)});
      state_.rates = {{{node, at(bytes, 1)}, uint64_t{at(bytes, 2)} * 4'000'000'000}};
    }
  }
  void transmit(MadReceiver&, const mad::Address& to, const mad::Mad& mad) override {
    fuzz::require(to.qkey == mad::kQkey && to.qpn == 1);
    fuzz::require(mad.base_version() == 1 && mad.mgmt_class() == mad::kSubnAdm);
    if (mad.rmpp_type() == mad::kRmppData) fuzz::require(mad.rmpp_active() && mad.is_response());
    last_ = mad;
    if (arrived_.size() < 256) arrived_.push_back(mad);
  }

  Subnet subnet_ = small_subnet();
  SmallState state_{subnet_};
  Scheduler scheduler_;
  SubnetAdministrator administrator_{subnet_, state_, scheduler_, 1, *this};
  uint64_t tid_ = 0;
  std::optional<mad::Mad> last_;
  std::vector<mad::Mad> arrived_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  std::span<const uint8_t> input(data, size);
  for (int record = 0; record < 256 && input.size() >= 2; ++record) {
    size_t length = std::min<size_t>(input[1], input.size() - 2);
    world.take(input[0], input.subspan(2, length));
    world.pass(0);
    input = input.subspan(2 + length);
  }
  world.end();
  return 0;
}
