#include "tools/rocefs-top/look_reader.h"

#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "tools/watch/mount_shape.h"

namespace rocefs::top {
namespace {

constexpr std::string_view kPort = "class/infiniband/*/ports/*/";
constexpr std::string_view kDeviceNames[kDeviceFiles] = {
    "state",
    "counters/port_xmit_data",
    "counters/port_rcv_data",
    "counters/port_xmit_packets",
    "counters/port_rcv_packets",
    "counters/port_xmit_discards",
    "counters/port_xmit_wait",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
    "hw_counters/np_ecn_marked_roce_packets",
    "hw_counters/out_of_sequence",
    "hw_counters/sr_retrans",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/duplicate_request",
};
constexpr std::string_view kLinkNames[kLinkFiles] = {"state",   "rate", "bytes",
                                                     "packets", "lost", "overflowed"};
constexpr std::string_view kQueueNames[kQueueFiles] = {
    "queue/*/bytes",   "queue/*/packets",  "queue/*/peak",
    "queue/*/marked",  "queue/*/dropped",  "pfc/*/paused",
    "pfc/*/paused_ns", "pfc/*/pause_sent", "pfc/*/pause_received",
};
constexpr std::string_view kFlowNames[kFlowFiles] = {"state", "rate", "window", "result"};
// Without the result, which is a stream: `get` gives those that are no streams alone.
constexpr std::string_view kLoadNames[] = {"state"};

// Directories with the files of a screen's records.
struct Family {
  Screen screen;
  std::string_view directory;  // of the mount
  std::span<const std::string_view> files;
};
constexpr Family kFamilies[] = {
    {Screen::kDevices, kPort, kDeviceNames},
    {Screen::kLinks, "kernel/debug/rocefs/links/*/", kLinkNames},
    {Screen::kQueues, "kernel/debug/rocefs/fabric/*/ports/*/", kQueueNames},
    {Screen::kFlows, "kernel/debug/rocefs/traffic/*/", kFlowNames},
    {Screen::kFlows, "kernel/debug/rocefs/loads/*/", kLoadNames},
};
constexpr std::string_view kNow = "kernel/debug/rocefs/clock/now_ns";
constexpr std::string_view kMode = "kernel/debug/rocefs/clock/mode";

std::vector<std::string> patterns_of(bool flows) {
  std::vector<std::string> patterns;
  for (const Family& family : kFamilies) {
    if ((family.screen == Screen::kFlows) != flows) continue;
    for (std::string_view file : family.files) {
      patterns.push_back(std::string(family.directory) + std::string(file));
    }
  }
  return patterns;
}

bool before_in_order(const std::string& one, const std::string& other) {
  return ::strverscmp(one.c_str(), other.c_str()) < 0;
}

std::optional<uint64_t> parsed_time(std::string_view text) {
  Result<uint64_t> value = kstrtou64(text, 10);
  return value ? std::optional(*value) : std::nullopt;
}

}  // namespace

std::vector<std::string> fabric_patterns() {
  std::vector<std::string> patterns = patterns_of(false);
  patterns.insert(patterns.begin(), {std::string(kNow), std::string(kMode)});
  return patterns;
}

std::vector<std::string> flow_patterns() {
  return patterns_of(true);
}

std::optional<Place> place_of(std::string_view path) {
  for (const Family& family : kFamilies) {
    const std::string_view fixed = family.directory.substr(0, family.directory.find('*'));
    if (!path.starts_with(fixed)) continue;
    for (size_t file = 0; file < family.files.size(); ++file) {
      const std::string pattern = std::string(family.directory) + std::string(family.files[file]);
      std::optional<std::vector<std::string_view>> stars = stars_of(pattern, path);
      if (!stars) continue;
      if (family.screen == Screen::kFlows) stars->insert(stars->begin(), split(path, "/")[3]);
      return Place{family.screen, file, fmt::format("{}", fmt::join(*stars, "/"))};
    }
  }
  return std::nullopt;
}

void LookLines::arrange(const std::vector<Looks::Line>& lines, Look& look) {
  std::vector<std::optional<Place>> places;
  std::array<std::vector<std::string>, kScreens> keys;
  for (const Looks::Line& line : lines) {
    places.push_back(place_of(line.path));
    if (const auto& place = places.back()) {
      keys[static_cast<size_t>(place->screen)].push_back(place->key);
    }
  }
  for (size_t screen = 0; screen < kScreens; ++screen) {
    std::sort(keys[screen].begin(), keys[screen].end(), before_in_order);
    keys[screen].erase(std::unique(keys[screen].begin(), keys[screen].end()), keys[screen].end());
    constexpr size_t kFiles[] = {kDeviceFiles, kLinkFiles, kQueueFiles, kFlowFiles};
    if (keys[screen].empty()) continue;
    look.records[screen].clear();
    for (std::string& key : keys[screen]) {
      look.records[screen].push_back({std::move(key), std::vector<std::string>(kFiles[screen])});
    }
  }
  slots_.clear();
  for (const std::optional<Place>& place : places) {
    slots_.emplace_back();
    if (!place) continue;
    const Record* record = look.find(place->screen, place->key);
    const size_t at = static_cast<size_t>(record - look.of(place->screen).data());
    slots_.back() = Slot{place->screen, at, place->file};
  }
}

void LookLines::put(const std::vector<Looks::Line>& lines, bool other_files, Look& look) {
  if (other_files) arrange(lines, look);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!slots_[i]) continue;
    Record& record = look.records[static_cast<size_t>(slots_[i]->screen)][slots_[i]->record];
    record.texts[slots_[i]->file] = unescaped(lines[i].text);
  }
}

LookReader::LookReader(const MountFiles& files)
    : files_(files), fabric_(files, fabric_patterns()), flows_(files, flow_patterns()) {}

Result<void> LookReader::name_ends() {
  Result<Shape> shape = shape_of(files_);
  if (!shape) return shape.error();
  auto name = [&](size_t node, unsigned port, const std::string& link, size_t far) {
    const std::string place = shape->nodes[node].name + "/" + std::to_string(port);
    const bool device = shape->nodes[node].kind == Shape::Node::Kind::kDevice;
    if (device) last_.out_links[place] = link;
    if (!device) last_.far_ends[place] = shape->nodes[far].name;
  };
  for (const Shape::Cable& cable : shape->cables) {
    name(cable.a, cable.a_port, cable.out, cable.b);
    name(cable.b, cable.b_port, cable.back, cable.a);
  }
  return {};
}

Result<void> LookReader::read() {
  const bool arranged = std::exchange(arranged_, false);
  if (Result<void> looked = fabric_.look(); !looked) return looked;
  if (Result<void> looked = flows_.look(); !looked) return looked;
  const bool other_fabric = fabric_.other_files() || !arranged;
  if (other_fabric) {
    last_ = Look{};
    if (Result<void> named = name_ends(); !named) return named;
  }
  for (const Looks::Line& line : fabric_.lines()) {
    if (line.path == kNow) last_.now_ns = parsed_time(line.text);
    if (line.path == kMode) last_.virtual_clock = line.text.find("[virtual]") != line.text.npos;
  }
  fabric_lines_.put(fabric_.lines(), other_fabric, last_);
  const bool other_flows = flows_.other_files() || other_fabric;
  if (other_flows) last_.records[static_cast<size_t>(Screen::kFlows)].clear();
  flow_lines_.put(flows_.lines(), other_flows, last_);
  read_load_results();
  arranged_ = true;
  return {};
}

// A load that leaves meanwhile is no record of the next look.
void LookReader::read_load_results() {
  for (Record& record : last_.records[static_cast<size_t>(Screen::kFlows)]) {
    if (!record.key.starts_with("loads/")) continue;
    Result<std::string> text = files_.read(std::string(kDebugFiles) + record.key + "/result");
    if (text) record.texts[kFlowResult] = std::move(*text);
  }
}

Result<Look> LookReader::look() {
  if (files_.ended()) {
    return errorf(ENOTCONN, "{}: the mount has ended", files_.mount_point());
  }
  if (Result<void> looked = read(); !looked) return looked.error();
  return last_;
}

}  // namespace rocefs::top
