#include "rdma/cm/message.h"

#include <algorithm>
#include <cstring>

#include "rdma/wire/bytes.h"

namespace rocefs::cm {
namespace {

using namespace wire;

constexpr uint8_t kBaseVersion = 1, kClassVersion = 2, kMethodSend = 3;
constexpr size_t kTidAt = 8, kAttributeAt = 16, kDataAt = 24;
// Order of Message.
constexpr uint16_t kAttributes[] = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18};
static_assert(std::size(kAttributes) == kMessages);

// Position of each field, for both directions: the octet at which its 32-bit word begins, and its
// first bit, counted from the most significant.
class Reader {
 public:
  explicit Reader(const uint8_t* data) : data_(data) {}
  template <class T>
  void bits(size_t word, unsigned first, unsigned width, T& value) {
    uint32_t all = load32(data_ + word) << first >> (32 - width);
    value = static_cast<T>(all);
  }
  void wide(size_t at, uint64_t& value) { value = load64(data_ + at); }
  template <size_t Size>
  void octets(size_t at, std::array<uint8_t, Size>& value) {
    std::memcpy(value.data(), data_ + at, Size);
  }

 private:
  const uint8_t* data_;
};

class Writer {
 public:
  explicit Writer(uint8_t* data) : data_(data) {}
  template <class T>
  void bits(size_t word, unsigned first, unsigned width, const T& value) {
    uint32_t mask = width == 32 ? ~uint32_t{0} : (uint32_t{1} << width) - 1;
    uint32_t part = (static_cast<uint32_t>(value) & mask) << (32 - width - first);
    store32(data_ + word, load32(data_ + word) | part);
  }
  void wide(size_t at, const uint64_t& value) { store64(data_ + at, value); }
  template <size_t Size>
  void octets(size_t at, const std::array<uint8_t, Size>& value) {
    std::memcpy(data_ + at, value.data(), Size);
  }

 private:
  uint8_t* data_;
};

void place_path(auto& at, size_t base, auto& path) {
  at.bits(base, 0, 16, path.local_lid);
  at.bits(base, 16, 16, path.remote_lid);
  at.octets(base + 4, path.local_gid);
  at.octets(base + 20, path.remote_gid);
  at.bits(base + 36, 0, 20, path.flow_label);
  at.bits(base + 36, 26, 6, path.rate);
  at.bits(base + 40, 0, 8, path.traffic_class);
  at.bits(base + 40, 8, 8, path.hop_limit);
  at.bits(base + 40, 16, 4, path.service_level);
  at.bits(base + 40, 20, 1, path.subnet_local);
  at.bits(base + 40, 24, 5, path.local_ack_timeout);
}

// Tables 106 ff. of IBTA volume 1.
void place(auto& at, auto& m, const Req*) {
  at.bits(0, 0, 32, m.local_id);
  at.wide(8, m.service_id);
  at.wide(16, m.ca_guid);
  at.bits(28, 0, 32, m.qkey);
  at.bits(32, 0, 24, m.qpn);
  at.bits(32, 24, 8, m.responder_resources);
  at.bits(36, 24, 8, m.initiator_depth);
  at.bits(40, 24, 5, m.remote_response_timeout);
  at.bits(40, 29, 2, m.transport);
  at.bits(40, 31, 1, m.flow_control);
  at.bits(44, 0, 24, m.starting_psn);
  at.bits(44, 24, 5, m.local_response_timeout);
  at.bits(44, 29, 3, m.retry_count);
  at.bits(48, 0, 16, m.pkey);
  at.bits(48, 16, 4, m.path_mtu);
  at.bits(48, 20, 1, m.rdc_exists);
  at.bits(48, 21, 3, m.rnr_retry_count);
  at.bits(48, 24, 4, m.max_cm_retries);
  at.bits(48, 28, 1, m.srq);
  at.bits(48, 29, 3, m.extended_transport);
  place_path(at, 52, m.primary);
  place_path(at, 96, m.alternate);
  at.octets(140, m.private_data);
}

void place_ids(auto& at, auto& m) {
  at.bits(0, 0, 32, m.local_id);
  at.bits(4, 0, 32, m.remote_id);
}

void place(auto& at, auto& m, const Mra*) {
  place_ids(at, m);
  at.bits(8, 0, 2, m.about);
  at.bits(8, 8, 5, m.service_timeout);
  at.octets(10, m.private_data);
}

void place(auto& at, auto& m, const Rej*) {
  place_ids(at, m);
  at.bits(8, 0, 2, m.about);
  at.bits(8, 8, 7, m.info_length);
  at.bits(8, 16, 16, m.reason);
  at.octets(12, m.info);
  at.octets(84, m.private_data);
}

void place(auto& at, auto& m, const Rep*) {
  place_ids(at, m);
  at.bits(8, 0, 32, m.qkey);
  at.bits(12, 0, 24, m.qpn);
  at.bits(20, 0, 24, m.starting_psn);
  at.bits(24, 0, 8, m.responder_resources);
  at.bits(24, 8, 8, m.initiator_depth);
  at.bits(24, 16, 5, m.target_ack_delay);
  at.bits(24, 21, 2, m.failover);
  at.bits(24, 23, 1, m.flow_control);
  at.bits(24, 24, 3, m.rnr_retry_count);
  at.bits(24, 27, 1, m.srq);
  at.wide(28, m.ca_guid);
  at.octets(36, m.private_data);
}

void place(auto& at, auto& m, const Rtu*) {
  place_ids(at, m);
  at.octets(8, m.private_data);
}

void place(auto& at, auto& m, const Dreq*) {
  place_ids(at, m);
  at.bits(8, 0, 24, m.remote_qpn);
  at.octets(12, m.private_data);
}

void place(auto& at, auto& m, const Drep*) {
  place_ids(at, m);
  at.octets(8, m.private_data);
}

void place(auto& at, auto& m, const SidrReq*) {
  at.bits(0, 0, 32, m.request_id);
  at.bits(4, 0, 16, m.pkey);
  at.wide(8, m.service_id);
  at.octets(16, m.private_data);
}

void place(auto& at, auto& m, const SidrRep*) {
  at.bits(0, 0, 32, m.request_id);
  at.bits(4, 0, 8, m.status);
  at.bits(4, 8, 8, m.info_length);
  at.bits(8, 0, 24, m.qpn);
  at.wide(12, m.service_id);
  at.bits(20, 0, 32, m.qkey);
  at.octets(24, m.info);
  at.octets(96, m.private_data);
}

template <size_t Index = 0>
Message read(size_t index, const uint8_t* data) {
  if constexpr (Index < kMessages) {
    if (index != Index) return read<Index + 1>(index, data);
    std::variant_alternative_t<Index, Message> message;
    Reader reader(data);
    place(reader, message, &message);
    return message;
  }
  return {};
}

constexpr uint8_t kIpv4Version = 0x40, kIpv6Version = 0x60;
constexpr size_t kSourceAt = 4, kDestinationAt = 20;

// IPv4 addresses stand alone in the last word.
Ip load_address(const uint8_t* at, bool ipv4) {
  Ip ip;
  std::memcpy(ip.data(), at, ip.size());
  return ipv4 ? mapped_ipv4({ip[12], ip[13], ip[14], ip[15]}) : ip;
}

void store_address(uint8_t* at, const Ip& ip, bool ipv4) {
  size_t skipped = ipv4 ? 12 : 0;
  std::memset(at, 0, skipped);
  std::memcpy(at + skipped, ip.data() + skipped, ip.size() - skipped);
}

}  // namespace

std::optional<Parsed> parse(std::span<const uint8_t> octets) {
  if (octets.size() != kMadSize) return std::nullopt;
  const uint8_t* mad = octets.data();
  if (mad[0] != kBaseVersion || mad[1] != kMgmtClass || mad[2] != kClassVersion ||
      mad[3] != kMethodSend) {
    return std::nullopt;
  }
  const uint16_t* end = std::end(kAttributes);
  const uint16_t* found = std::find(kAttributes, end, load16(mad + kAttributeAt));
  if (found == end) return std::nullopt;
  return Parsed{load64(mad + kTidAt),
                read(static_cast<size_t>(found - kAttributes), mad + kDataAt)};
}

Mad emit(uint64_t tid, const Message& message) {
  Mad mad{kBaseVersion, kMgmtClass, kClassVersion, kMethodSend};
  store64(mad.data() + kTidAt, tid);
  store16(mad.data() + kAttributeAt, kAttributes[message.index()]);
  Writer writer(mad.data() + kDataAt);
  std::visit([&](const auto& m) { place(writer, m, &m); }, message);
  return mad;
}

std::optional<IpHeader> parse_ip_header(std::span<const uint8_t> private_data) {
  if (private_data.size() < IpHeader::kSize || private_data[0] != 0) return std::nullopt;
  uint8_t version = private_data[1] & 0xf0;
  if (version != kIpv4Version && version != kIpv6Version) return std::nullopt;
  bool ipv4 = version == kIpv4Version;
  return IpHeader{load16(private_data.data() + 2), load_address(&private_data[kSourceAt], ipv4),
                  load_address(&private_data[kDestinationAt], ipv4)};
}

void emit_ip_header(const IpHeader& header, std::span<uint8_t> out) {
  bool ipv4 = is_mapped_ipv4(header.source);
  out[0] = 0;
  out[1] = ipv4 ? kIpv4Version : kIpv6Version;
  store16(&out[2], header.source_port);
  store_address(&out[kSourceAt], header.source, ipv4);
  store_address(&out[kDestinationAt], header.destination, ipv4);
}

}  // namespace rocefs::cm
