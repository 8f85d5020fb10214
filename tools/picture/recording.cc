#include "tools/picture/recording.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace rocefs {
namespace {

using nlohmann::json;

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

// One message that has the effect of two. Throws json::exception for malformed ones.
std::string joined(const std::string& one, const std::string& two) {
  json all = json::parse(one), later = json::parse(two);
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

}  // namespace

std::string recording_head(std::string_view shape) {
  return fmt::format("{{\"shape\":{}}}", shape);
}

std::optional<std::string> shape_in(std::string_view head) {
  json first = json::parse(head, nullptr, false);
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

bool Recording::shorten(size_t most) {
  while (size() > most) {
    if (messages.size() < 4) return false;
    std::vector<std::string> fewer = {std::move(messages.front())};
    const size_t last = messages.size() - 1;
    size_t at = 1;
    try {
      for (; at + 1 < last; at += 2) fewer.push_back(joined(messages[at], messages[at + 1]));
    } catch (const json::exception&) {
      return false;
    }
    for (; at <= last; ++at) fewer.push_back(std::move(messages[at]));
    messages = std::move(fewer);
  }
  return true;
}

}  // namespace rocefs
