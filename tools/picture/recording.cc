#include "tools/picture/recording.h"

#include <fmt/core.h>

#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace rocefs {
namespace {

using nlohmann::json;

// Discarded if the text is no JSON. Values that are nested more deeply than any of ours are left
// out: writing them would take as many calls.
json parsed(std::string_view text) {
  constexpr int kDeepest = 8;
  return json::parse(
      text, [](int depth, json::parse_event_t, const json&) { return depth <= kDeepest; }, false);
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Puts the changes of a later part of a group into an earlier one, or replaces it.
void join_group(json& earlier, json later) {
  if (later.contains("paths")) {
    earlier = std::move(later);
    return;
  }
  json& changes = later.at("c");
  if (earlier.contains("paths")) {
    json& values = earlier.at("values");
    for (size_t i = 0; i + 1 < changes.size(); i += 2) {
      values.at(changes[i].get<size_t>()) = std::move(changes[i + 1]);
    }
    return;
  }
  std::map<size_t, json> last;
  for (json* part : {&earlier.at("c"), &changes}) {
    for (size_t i = 0; i + 1 < part->size(); i += 2) {
      last[part->at(i).get<size_t>()] = std::move(part->at(i + 1));
    }
  }
  json joined = json::array();
  for (auto& [index, text] : last) {
    joined.push_back(index);
    joined.push_back(std::move(text));
  }
  earlier["c"] = std::move(joined);
}

// One message that has the effect of two. Throws for malformed ones.
std::string joined(const std::string& one, const std::string& two) {
  json all = parsed(one), later = parsed(two);
  for (json& group : later.at("groups")) {
    bool found = false;
    for (json& known : all.at("groups")) {
      if (known.at("g") != group.at("g")) continue;
      join_group(known, std::move(group));
      found = true;
      break;
    }
    if (!found) all["groups"].push_back(std::move(group));
  }
  for (const char* lines : {"dmesg", "stores"}) {
    if (!later.contains(lines)) continue;
    json& list = all.emplace(lines, json::array()).first.value();
    for (json& line : later[lines]) list.push_back(std::move(line));
  }
  for (const char* last : {"wall", "gone"}) {
    all.erase(last);
    if (later.contains(last)) all[last] = std::move(later[last]);
  }
  return text_of(all);
}

// Null if the message has none.
json* group_0(json& message) {
  for (json& group : message.at("groups")) {
    if (group.at("g") == 0) return &group;
  }
  return nullptr;
}

bool has_paths(const json* group) {
  return group && group->contains("paths");
}

// Files that are not 0, or stand for their port, or are of no queue.
std::vector<bool> busy_or_no_queue(const json& group) {
  std::vector<bool> wanted;
  const json& paths = group.at("paths");
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto& path = paths[i].get_ref<const std::string&>();
    const bool queue = path.find("/queue/") != path.npos || path.find("/pfc/") != path.npos;
    wanted.push_back(!queue || path.ends_with("/queue/0/bytes") || group.at("values").at(i) != "0");
  }
  return wanted;
}

void keep_files(json& group, const std::vector<bool>& wanted) {
  for (const char* list : {"paths", "values"}) {
    json kept = json::array();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) kept.push_back(std::move(group.at(list).at(i)));
    }
    group[list] = std::move(kept);
  }
}

}  // namespace

std::string recording_head(std::string_view shape) {
  return fmt::format("{{\"shape\":{}}}", shape);
}

std::optional<std::string> shape_in(std::string_view head) {
  json first = parsed(head);
  if (!first.is_object() || !first.contains("shape")) return std::nullopt;
  const json& shape = first["shape"];
  auto has_list = [&](const char* name) { return shape.contains(name) && shape[name].is_array(); };
  if (!shape.is_object() || !has_list("nodes") || !has_list("cables")) return std::nullopt;
  return text_of(shape);
}

std::optional<Recording> Recording::parse(std::string_view text) {
  const size_t head_end = text.find('\n');
  if (head_end == text.npos) return std::nullopt;
  std::optional<std::string> shape = shape_in(text.substr(0, head_end));
  if (!shape) return std::nullopt;
  Recording recording{std::move(*shape), {}};
  for (size_t at = head_end + 1, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string_view message = text.substr(at, end - at);
    if (!json::accept(message)) return std::nullopt;
    recording.messages.emplace_back(message);
  }
  return recording;
}

size_t Recording::size() const {
  size_t size = shape.size();
  for (const std::string& message : messages) size += message.size() + 1;
  return size;
}

bool Recording::drop_flows() {
  for (std::string& message : messages) {
    json one = parsed(message);
    if (!one.is_object() || !one.contains("groups")) return false;
    one.erase("dmesg");
    json kept = json::array();
    for (json& group : one["groups"]) {
      if (group.is_object() && group.contains("g") && group["g"] == 0) kept.push_back(group);
    }
    one["groups"] = std::move(kept);
    message = text_of(one);
  }
  return true;
}

bool Recording::shorten(size_t most) {
  try {
    if (size() > most) drop_idle_queues();
    while (size() > most) {
      if (messages.size() < 4) return false;
      join_neighbours();
    }
  } catch (const std::exception&) {  // the library's, and of an index that is no file's
    return false;
  }
  return true;
}

// Files of group 0 are the same ones from a message with paths to the next such message. A message
// at a time is JSON: all of them take much memory.
void Recording::drop_idle_queues() {
  for (size_t begin = 0, end; begin < messages.size(); begin = end) {
    json opening = parsed(messages[begin]);
    json* first = group_0(opening);
    std::vector<bool> wanted;
    if (has_paths(first)) wanted = busy_or_no_queue(*first);
    for (end = begin + 1; end < messages.size(); ++end) {
      json message = parsed(messages[end]);
      const json* group = group_0(message);
      if (has_paths(group)) break;
      for (size_t at = 0; group && at < group->at("c").size(); at += 2) {
        wanted.at(group->at("c")[at].get<size_t>()) = true;
      }
    }
    if (!has_paths(first)) continue;
    keep_files(*first, wanted);
    messages[begin] = text_of(opening);
    std::vector<size_t> places;  // new indices by old ones
    size_t next = 0;
    for (bool one : wanted) places.push_back(one ? next++ : SIZE_MAX);
    for (size_t i = begin + 1; i < end; ++i) {
      json message = parsed(messages[i]);
      json* group = group_0(message);
      for (size_t at = 0; group && at < group->at("c").size(); at += 2) {
        json& index = group->at("c")[at];
        index = places[index.get<size_t>()];
      }
      messages[i] = text_of(message);
    }
  }
}

void Recording::join_neighbours() {
  std::vector<std::string> fewer = {std::move(messages.front())};
  const size_t last = messages.size() - 1;
  size_t at = 1;
  for (; at + 1 < last; at += 2) fewer.push_back(joined(messages[at], messages[at + 1]));
  for (; at <= last; ++at) fewer.push_back(std::move(messages[at]));
  messages = std::move(fewer);
}

}  // namespace rocefs
