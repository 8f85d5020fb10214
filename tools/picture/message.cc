#include "tools/picture/message.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rocefs {

const std::vector<std::string> kFabricFiles = {
    "kernel/debug/rocefs/clock/now_ns",
    "kernel/debug/rocefs/clock/mode",
    "kernel/debug/rocefs/links/*/bytes",
    "kernel/debug/rocefs/links/*/lost",
    "kernel/debug/rocefs/links/*/overflowed",
    "kernel/debug/rocefs/links/*/rate",
    "kernel/debug/rocefs/links/*/state",
    "kernel/debug/rocefs/fabric/*/buffer/used",
    "kernel/debug/rocefs/fabric/*/buffer/size",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/bytes",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/marked",
    "kernel/debug/rocefs/fabric/*/ports/*/queue/*/dropped",
    "kernel/debug/rocefs/fabric/*/ports/*/pfc/*/paused",
    "kernel/debug/rocefs/fabric/*/ports/*/pfc/*/pause_sent",
    "class/infiniband/*/ports/*/hw_counters/np_cnp_sent",
    "class/infiniband/*/ports/*/hw_counters/rp_cnp_handled",
    "class/infiniband/*/ports/*/hw_counters/out_of_sequence",
    "class/infiniband/*/ports/*/hw_counters/packet_seq_err",
    "class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err",
    "class/infiniband/*/ports/*/hw_counters/sr_retrans",
    // Once more at the end: files of one look are read one after the other.
    "kernel/debug/rocefs/clock/now_ns",
};
const std::vector<std::string> kFlowFiles = {
    "kernel/debug/rocefs/traffic/*/state", "kernel/debug/rocefs/traffic/*/result",
    "kernel/debug/rocefs/traffic/*/rate",  "kernel/debug/rocefs/traffic/*/window",
    "kernel/debug/rocefs/loads/*/state",
};

void append_json(std::string& contents, std::string_view part) {
  if (!contents.empty() && !part.empty()) contents += ',';
  contents += part;
}

std::string json_lines(std::string_view text, size_t most) {
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < most) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const size_t begin = text.rfind('\n') + 1;  // 0 if there is none
    lines.push_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::string json;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!json.empty()) json += ',';
    json += json_string(*line);
  }
  return json;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view new_lines(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return now.substr(before.size());
  // The oldest lines were dropped: the last one that is known is looked for.
  if (before.ends_with('\n')) before.remove_suffix(1);
  const std::string_view last = before.substr(before.rfind('\n') + 1);
  const size_t at = last.empty() ? now.npos : now.rfind(last);
  return at == now.npos ? now : now.substr(std::min(at + last.size() + 1, now.size()));
}

std::string whole_group(size_t number, const Looks& looks) {
  std::string paths, values;
  for (const Looks::Line& line : looks.lines()) {
    if (!paths.empty()) paths += ',', values += ',';
    paths += json_string(line.path);
    values += json_string(unescaped(line.text));
  }
  return fmt::format("{{\"g\":{},\"paths\":[{}],\"values\":[{}]}}", number, paths, values);
}

std::string changes_of_group(size_t number, const Looks& looks) {
  std::string changed;
  for (uint32_t i : looks.changed()) {
    if (!changed.empty()) changed += ',';
    changed += fmt::format("{},{}", i, json_string(unescaped(looks.lines()[i].text)));
  }
  return fmt::format("{{\"g\":{},\"c\":[{}]}}", number, changed);
}

std::string MessageContent::message(std::string_view wall, std::string_view gone) const {
  std::string text = "{";
  if (!wall.empty()) text += fmt::format("\"wall\":{},", wall);
  text += fmt::format("\"groups\":[{}]", groups);
  if (!dmesg.empty()) text += fmt::format(",\"dmesg\":[{}]", dmesg);
  if (!stores.empty()) text += fmt::format(",\"stores\":[{}]", stores);
  if (!gone.empty()) text += fmt::format(",\"gone\":{}", json_string(gone));
  return text + "}";
}

}  // namespace rocefs
