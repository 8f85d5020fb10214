#include "mad_cc/sa/sa_paths.h"

#include <algorithm>
#include <vector>

#include "mad_cc/net/attributes.h"

namespace rocefs::sa {
namespace {

using wire::load16;
using wire::load32;
using wire::load64;
using wire::store16;
using wire::store32;
using wire::store64;

// Bits of ComponentMask.
enum Bit : unsigned {
  kServiceId = 0,
  kServiceIdLow = 1,
  kDgid = 2,
  kSgid = 3,
  kDlid = 4,
  kSlid = 5,
  kRawTraffic = 6,
  kFlowLabel = 8,
  kHopLimit = 9,
  kTclass = 10,
  kReversible = 11,
  kNumbPath = 12,
  kPkey = 13,
  kQosClass = 14,
  kSl = 15,
  kMtuSelector = 16,
  kMtu = 17,
  kRateSelector = 18,
  kRate = 19,
  kLifetimeSelector = 20,
  kLifetime = 21,
  kPreference = 22,
};
// Octets of the record.
enum Offset : size_t {
  kAtServiceId = 0,
  kAtDgid = 8,
  kAtSgid = 24,
  kAtDlid = 40,
  kAtSlid = 42,
  kAtHopFlow = 44,  // RawTraffic, FlowLabel, HopLimit
  kAtTclass = 48,
  kAtNumbPath = 49,  // Reversible, NumbPath
  kAtPkey = 50,
  kAtQosSl = 52,
  kAtMtu = 54,  // from here on with a selector
  kAtRate = 55,
  kAtLifetime = 56,
  kAtPreference = 57,
};
constexpr uint32_t kRawBit = 1u << 31, kFlowBits = 0xfffff00, kHopBits = 0xff;
constexpr uint16_t kDefaultPkey = 0xffff;

enum Selector : uint8_t { kGreater = 0, kLess = 1, kExactly = 2, kBest = 3 };
constexpr uint8_t exactly(uint8_t code) {
  return static_cast<uint8_t>(kExactly << 6 | code);
}

class Wanted {
 public:
  explicit Wanted(const mad::Mad& request) : mask_(load64(&request.bytes[48])) {
    std::copy_n(&request.bytes[56], record_.size(), record_.begin());
  }
  bool has(Bit bit) const { return (mask_ >> bit & 1) != 0; }
  const uint8_t* at(Offset offset) const { return &record_[offset]; }

  // Compares a value of the path, with its selector if both are requested.
  template <class Of>
  bool admits(Bit selector, Bit value, Offset offset, uint8_t code, Of of) const {
    if (!has(value)) return true;
    auto have = of(code), limit = of(static_cast<uint8_t>(*at(offset) & 0x3f));
    switch (has(selector) ? *at(offset) >> 6 : kExactly) {
      case kGreater:
        return have > limit;
      case kLess:
        return have < limit;
      case kExactly:
        return have == limit;
      default:
        return true;  // the best there is: there is one
    }
  }
  // Checks requirements that do not depend on the ends.
  bool possible() const {
    uint32_t hop_flow = load32(at(kAtHopFlow));
    uint16_t pkey_number = load16(at(kAtPkey)) & 0x7fff;  // the upper bit is the membership
    auto same = [](uint8_t code) { return code; };
    return !(has(kRawTraffic) && (hop_flow & kRawBit) != 0) &&
           !(has(kHopLimit) && (hop_flow & kHopBits) != 0) &&
           !(has(kPkey) && pkey_number != (kDefaultPkey & 0x7fff)) &&
           !(has(kSl) && (load16(at(kAtQosSl)) & 0xf) != 0) &&
           !(has(kPreference) && *at(kAtPreference) != 0) &&
           admits(kLifetimeSelector, kLifetime, kAtLifetime, mad::kLifetimeCode, same);
  }

 private:
  uint64_t mask_;
  std::array<uint8_t, kPathRecordSize> record_;
};

using Ends = std::vector<Subnet::End>;

class Paths final : public Records {
 public:
  Paths(const Wanted& wanted, const Picture& picture, Ends from, Ends to)
      : wanted_(wanted), picture_(picture), from_(std::move(from)), to_(std::move(to)) {}
  size_t size() const override { return kPathRecordSize; }
  size_t candidates() const override { return from_.size() * to_.size(); }
  bool make(size_t candidate, uint8_t* record) const override {
    Subnet::End from = from_[candidate / to_.size()], to = to_[candidate % to_.size()];
    auto path = picture_.routes.path(from, to);
    if (!path) return false;
    uint8_t mtu = mad::mtu_code(path->mtu), rate = mad::rate_code(path->rate_bps);
    auto same = [](uint8_t code) { return code; };
    if (!wanted_.admits(kMtuSelector, kMtu, kAtMtu, mtu, same) ||
        !wanted_.admits(kRateSelector, kRate, kAtRate, rate, mad::rate_mbps))
      return false;
    write(from, to, record);
    record[kAtMtu] = exactly(mtu);
    record[kAtRate] = exactly(rate);
    return true;
  }

 private:
  void write(Subnet::End from, Subnet::End to, uint8_t* record) const {
    const SubnetPort &source = picture_.subnet.at(from), &destination = picture_.subnet.at(to);
    if (wanted_.has(kServiceId) || wanted_.has(kServiceIdLow))
      store64(record + kAtServiceId, load64(wanted_.at(kAtServiceId)));
    store64(record + kAtDgid, kSubnetPrefix);
    store64(record + kAtDgid + 8, destination.guid);
    store64(record + kAtSgid, kSubnetPrefix);
    store64(record + kAtSgid + 8, source.guid);
    store16(record + kAtDlid, destination.lid);
    store16(record + kAtSlid, source.lid);
    // Hop limit 0: no router is on the route.
    if (wanted_.has(kFlowLabel))
      store32(record + kAtHopFlow, load32(wanted_.at(kAtHopFlow)) & kFlowBits);
    if (wanted_.has(kTclass)) record[kAtTclass] = *wanted_.at(kAtTclass);
    record[kAtNumbPath] = 1 << 7;  // reversible
    store16(record + kAtPkey, kDefaultPkey);
    if (wanted_.has(kQosClass)) store16(record + kAtQosSl, load16(wanted_.at(kAtQosSl)) & 0xfff0);
    record[kAtLifetime] = exactly(mad::kLifetimeCode);
  }

  Wanted wanted_;
  const Picture& picture_;
  Ends from_, to_;
};

// Collects the possible ends of one side of the path. Returns false if the GID is not in this
// subnet.
bool select(const Wanted& wanted, const Picture& picture, Bit gid, Offset at_gid, Bit lid,
            Offset at_lid, Ends& ends) {
  const Subnet& subnet = picture.subnet;
  ends = subnet.by_lid;
  if (wanted.has(lid)) {
    uint16_t number = load16(wanted.at(at_lid));
    std::erase_if(ends, [&](Subnet::End end) { return subnet.at(end).lid != number; });
  }
  if (wanted.has(gid)) {
    uint64_t guid = load64(wanted.at(at_gid) + 8);
    auto other = [&](Subnet::End end) { return subnet.at(end).guid != guid; };
    if (load64(wanted.at(at_gid)) != kSubnetPrefix) return false;
    if (std::all_of(subnet.by_lid.begin(), subnet.by_lid.end(), other)) return false;
    std::erase_if(ends, other);
  }
  std::erase_if(ends, [&](Subnet::End end) { return !picture.routes.reachable(end); });
  return true;
}

}  // namespace

PathQuery paths_of(const mad::Mad& request, const Picture& picture) {
  Wanted wanted(request);
  bool open =
      !(wanted.has(kSgid) || wanted.has(kSlid)) || !(wanted.has(kDgid) || wanted.has(kDlid));
  if (open && request.method() == mad::kGet) return {mad::kSaInsufficientComponents, nullptr};
  if (wanted.has(kNumbPath) && (*wanted.at(kAtNumbPath) & 0x7f) == 0)
    return {mad::kSaRequestInvalid, nullptr};
  Ends from, to;
  if (!select(wanted, picture, kSgid, kAtSgid, kSlid, kAtSlid, from) ||
      !select(wanted, picture, kDgid, kAtDgid, kDlid, kAtDlid, to))
    return {mad::kSaBadGid, nullptr};
  if (!wanted.possible()) from.clear();
  return {mad::kOk, std::make_unique<Paths>(wanted, picture, std::move(from), std::move(to))};
}

}  // namespace rocefs::sa
