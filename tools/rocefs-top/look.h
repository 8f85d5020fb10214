// Look: what the files of a mount said at one moment, as records: of ports, links, queues, flows.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocefs::top {

enum class Screen : uint8_t { kDevices, kLinks, kQueues, kFlows };
inline constexpr size_t kScreens = 4;

// Files of a record, by screen. Data of ports are in units of 4 octets.
enum DeviceFile : size_t {
  kPortState,
  kXmitData,
  kRcvData,
  kXmitPackets,
  kRcvPackets,
  kXmitDiscards,
  kXmitWait,
  kCnpSent,
  kCnpHandled,
  kEcnReceived,
  kOutOfSequence,
  kSelective,
  kNaks,
  kTimeouts,
  kDuplicates,
  kDeviceFiles
};
enum LinkFile : size_t {
  kLinkState,
  kLinkRate,
  kLinkBytes,
  kLinkPackets,
  kLost,
  kOverflowed,
  kLinkFiles
};
enum QueueFile : size_t {
  kQueued,
  kQueuedPackets,
  kPeak,
  kMarked,
  kDropped,
  kPaused,
  kPausedNs,
  kPauseSent,
  kPauseReceived,
  kQueueFiles
};
enum FlowFile : size_t { kFlowState, kFlowRate, kFlowWindow, kFlowResult, kFlowFiles };

struct Record {
  // DEVICE/PORT, LINK, SWITCH/PORT/PRIORITY, and traffic/NAME or loads/NAME.
  std::string key;
  std::vector<std::string> texts;  // by file; empty where it does not exist

  std::optional<double> number(size_t file) const;
  // Rate in bit/s of a file that has it with a unit, 25G.
  std::optional<double> rate(size_t file) const;
};

struct Look {
  std::optional<uint64_t> now_ns;  // engine time
  bool virtual_clock = false;
  // By screen, sorted by key, numbers within by their value.
  std::array<std::vector<Record>, kScreens> records;
  std::map<std::string, std::string> far_ends;   // SWITCH/PORT -> the cable's other end
  std::map<std::string, std::string> out_links;  // DEVICE/PORT -> the link that it transmits on

  const std::vector<Record>& of(Screen screen) const {
    return records[static_cast<size_t>(screen)];
  }
  // Null if there is no such record.
  const Record* find(Screen screen, std::string_view key) const;
};

// The value of a line `KEY VALUE` of a flow's result. Nothing without one.
std::optional<double> result_value(std::string_view result, std::string_view key);

// Seconds of engine time from one look to the next; 0 if none has passed.
double seconds_between(const Look& before, const Look& now);

}  // namespace rocefs::top
