// The communication managers of two devices and programs at their channels: MADs from outside,
// commands as librdmacm writes them or damaged, and time that passes. When the channels are closed,
// no state is left.
//
// An input is a series of records: a byte of Op, one of its argument, a length of two bytes, and as
// many bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "rdma/cm/ucma.h"
#include "rdma/cm/ucma_abi.h"
#include "rdma/nic/device.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;
using rocefs::fuzz::require;

namespace {

enum Op : uint8_t {
  kMad,      // the bytes, to mb_1 from mb_0's address or, if `argument` is odd, a stranger's
  kMessage,  // the attribute 0x10 + `argument`, the bytes behind the MAD's header
  kAnswer,   // the last message transmitted, with the bytes over it from octet `argument`
  kCommand,  // to the channel `argument`: what is written to the kernel, header included
  kOption,   // the same, whose last 4 bytes are an option
  kMigrate,  // the same, of an id of the other channel
  kPass,     // `argument` x 100 ms
  kReopen,   // the channel `argument`
  kUnbind,   // and bind: device `argument`
  kSteal,    // the other channel's newest id is migrated to channel `argument`, then destroyed
  kOps,
};
constexpr size_t kChannels = 2;

class World {
 public:
  World()
      : fabric_(default_topology(), 1, scheduler_, outstanding_), cma_(fabric_, 0), ucma_(cma_) {
    for (auto& device : fabric_.devices()) {
      require(static_cast<bool>(device->registers().open(ClockMode::kVirtual)));
    }
    for (uint64_t name = 0; name < kChannels; ++name) ucma_.open(name, {}, [] {});
  }

  void take(uint8_t op, uint8_t argument, std::span<const uint8_t> bytes) {
    Port& port = fabric_.devices()[1]->port();
    AddressVector path{gids_of(port.spec())[1], gids_of(fabric_.devices()[0]->port().spec())[1]};
    UcmaChannel& channel = *ucma_.channel(argument % kChannels);
    cm::Mad mad{1, 7, 2, 3};
    switch (op % kOps) {
      case kMad:
        if (argument & 1) path.remote[15] ^= 0x55;
        return void(manager(1).receive_mad(port, path, bytes));
      case kMessage:
        mad[17] = static_cast<uint8_t>(0x10 + argument);
        std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), 232), mad.begin() + 24);
        return void(manager(1).receive_mad(port, path, mad));
      case kAnswer:
        return answer(argument, bytes);
      case kCommand:
        return check(channel, channel.command(bytes, {}, nullptr));
      case kOption: {
        size_t option = std::min<size_t>(bytes.size(), 4);
        auto rest = bytes.first(bytes.size() - option);
        return check(channel, channel.command(rest, bytes.last(option), nullptr));
      }
      case kMigrate:
        return check(channel,
                     channel.command(bytes, {}, ucma_.channel((argument + 1) % kChannels)));
      case kPass:
        return scheduler_.run_until(scheduler_.now() + argument * 100 * kMillisecond);
      case kReopen:
        ucma_.close(argument % kChannels);
        return ucma_.open(argument % kChannels, {}, [] {});
      case kUnbind:
        fabric_.devices()[argument & 1]->leave();
        return fabric_.devices()[argument & 1]->arrive();
      case kSteal:
        return steal(argument % kChannels);
    }
  }

  // Waits for late answers, for as long as a REQ can say.
  void finish() {
    for (uint64_t name = 0; name < kChannels; ++name) ucma_.close(name);
    require(ucma_.ids() == 0);
    scheduler_.run_until(scheduler_.now() + (TimeNs{4096} << 32));
    for (size_t i = 0; i < 2; ++i) {
      require(manager(i).connections() == 0);
      require(manager(i).questions() == 0);
    }
  }

 private:
  CmManager& manager(size_t i) { return cma_.manager(*fabric_.devices()[i]); }
  static void check(UcmaChannel& channel, const Result<UcmaChannel::Reply>& reply) {
    require(!reply || !reply->emptied || channel.events() == 0);
  }

  void steal(uint64_t to) {
    UcmaChannel &channel = *ucma_.channel(to), &from = *ucma_.channel(1 - to);
    std::array<uint8_t, 24> octets{};  // a header, and MIGRATE_ID or DESTROY_ID
    auto command = [&](ucma::Command which, const auto& body) {
      ucma::Header header{static_cast<uint32_t>(which), sizeof body, sizeof(ucma::EventsAnswer)};
      std::memcpy(octets.data(), &header, sizeof header);
      std::memcpy(octets.data() + sizeof header, &body, sizeof body);
      auto whole = std::span(octets).first(sizeof header + sizeof body);
      return static_cast<bool>(channel.command(whole, {}, &from));
    };
    for (uint32_t id = static_cast<uint32_t>(ucma_.ids()) + 8; id-- > 0;) {
      if (!command(ucma::Command::kMigrateId, ucma::MigrateId{0, id, 0})) continue;
      return void(command(ucma::Command::kDestroyId, ucma::DestroyId{0, id, 0}));
    }
  }

  // Sends the last message of mb_1 as if mb_0 had sent it: ids change places.
  void answer(uint8_t at, std::span<const uint8_t> bytes) {
    Port& port = fabric_.devices()[1]->port();
    const Packet* packet = port.gsi().front();
    if (!packet) return scheduler_.run_until(scheduler_.now() + kMillisecond);
    cm::Mad mad{};
    const uint8_t* sent = payload_bytes(*packet);
    std::copy_n(sent, mad.size(), mad.begin());
    std::swap_ranges(mad.begin() + 24, mad.begin() + 28, mad.begin() + 28);
    size_t size = std::min<size_t>(bytes.size(), mad.size() - at);
    std::copy_n(bytes.begin(), size, mad.begin() + at);
    AddressVector path{gids_of(port.spec())[1], gids_of(fabric_.devices()[0]->port().spec())[1]};
    (void)manager(1).receive_mad(port, path, mad);
  }

  Scheduler scheduler_;
  Outstanding outstanding_;
  Fabric fabric_;
  Cma cma_;
  Ucma ucma_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  for (size_t at = 0; at + 4 <= size;) {
    size_t length = std::min<size_t>(data[at + 2] | data[at + 3] << 8, size - at - 4);
    world.take(data[at], data[at + 1], {data + at + 4, length});
    at += 4 + length;
  }
  world.finish();
  return 0;
}
