#include "tools/rocefs-view/view_api.h"

#include <httplib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "tools/watch/mount_shape.h"

namespace rocefs {
namespace {

using nlohmann::json;

constexpr char kDmesg[] = "kernel/debug/rocefs/dmesg";
constexpr size_t kMaxPins = 64;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

int status_of(int code) {
  return code == ENOENT || code == ENODEV ? 404 : code == EACCES || code == EPERM ? 403 : 400;
}

}  // namespace

ViewApi::ViewApi(PageServer& server, const MountFiles& files, Feed& feed)
    : server_(server), files_(files), feed_(feed), metrics_(files) {
  using httplib::Request;
  using httplib::Response;
  httplib::Server& http = server.http();
  http.Get("/api/shape", [this](const Request&, Response& response) {
    Result<std::string> shape = shape_json(files_, server_.stores());
    if (!shape) return send_error(response, status_of(shape.error().code), shape.error());
    response.set_content(*shape, kJsonType);
  });
  http.Get("/api/feed",
           [this](const Request& request, Response& response) { send_feed(request, response); });
  http.Get("/api/list",
           [this](const Request& request, Response& response) { send_list(request, response); });
  http.Get("/api/file",
           [this](const Request& request, Response& response) { send_file(request, response); });
  http.Get("/api/may-store", [this](const Request& request, Response& response) {
    response.set_content(server_.may_store(request) ? "true" : "false", kJsonType);
  });
  http.Get("/metrics", [this](const Request&, Response& response) {
    Result<std::string> text = metrics_.scrape();
    if (!text) return send_error(response, 503, text.error());
    response.set_content(*text, kMetricsType);
  });
  http.Post("/api/store",
            [this](const Request& request, Response& response) { store(request, response); });
}

void ViewApi::send_feed(const httplib::Request& request, httplib::Response& response) {
  std::vector<std::string> pins;
  for (size_t i = 0; i < request.get_param_value_count("pin"); ++i) {
    std::string pin = request.get_param_value("pin", i);
    // A query of the tree has patterns with blanks between.
    if (pin.empty() || pin.find_first_of(" \t\n") != pin.npos || pins.size() == kMaxPins) {
      return send_error(response, 400, errorf(EINVAL, "pin: a path, {} at most", kMaxPins));
    }
    pins.push_back(std::move(pin));
  }
  if (++streams_ > kMaxStreams) {
    --streams_;
    return send_error(response, 503, {EAGAIN, "too many pages are open"});
  }
  auto listener = std::make_shared<Feed::Listener>(feed_, std::move(pins));
  response.set_chunked_content_provider(
      "text/event-stream",
      [listener](size_t, httplib::DataSink& sink) {
        const std::string message = listener->next();
        if (message.empty()) return false;
        const std::string event = "data: " + message + "\n\n";
        return sink.write(event.data(), event.size());
      },
      [this, listener](bool) { --streams_; });
}

void ViewApi::send_list(const httplib::Request& request, httplib::Response& response) {
  Result<std::vector<MountFiles::Entry>> entries = files_.list(request.get_param_value("path"));
  if (!entries) return send_error(response, status_of(entries.error().code), entries.error());
  json list = json::array();
  for (const MountFiles::Entry& entry : *entries) {
    if (entry.kind == MountFiles::Entry::Kind::kOther) continue;
    list.push_back({{"name", entry.name},
                    {"directory", entry.kind == MountFiles::Entry::Kind::kDirectory},
                    {"readable", entry.readable},
                    {"writable", entry.writable}});
  }
  response.set_content(dumped(list), kJsonType);
}

void ViewApi::send_file(const httplib::Request& request, httplib::Response& response) {
  const std::string path = request.get_param_value("path");
  // To open a device is to do something, and dev/ may be written in other ways.
  const std::vector<std::string_view> parts = split(path, "/");
  const bool plain = std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part == "." || part == "..";
  });
  if (!plain || parts.empty() || parts[0] == "dev") {
    return send_error(response, 403, errorf(EPERM, "{}: no file of the tree, or a device", path));
  }
  Result<std::string> text = files_.read(path);
  if (!text) return send_error(response, status_of(text.error().code), text.error());
  response.set_content(*text, "text/plain; charset=utf-8");
}

// The line of dmesg about a store that was refused, of those that have come since `before`.
std::string ViewApi::reason_in_dmesg(const std::string& path, const std::string& before) const {
  Result<std::string> log = files_.read(kDmesg);
  if (!log) return {};
  const std::string_view news = new_lines(before, *log);
  const size_t found = news.rfind(path.substr(path.rfind('/') + 1) + ": ");
  if (found == news.npos) return {};
  const size_t begin = news.rfind('\n', found) + 1;
  return std::string(news.substr(begin, news.find('\n', found) - begin));
}

void ViewApi::store(const httplib::Request& request, httplib::Response& response) {
  const json body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("path") || !body["path"].is_string() ||
      !body.contains("text") || !body["text"].is_string()) {
    return send_error(response, 400, {EINVAL, "{\"path\": FILE, \"text\": TEXT} is wanted"});
  }
  const std::string path = body["path"], text = body["text"];
  Result<std::string> before = files_.read(kDmesg);
  if (Result<void> stored = files_.store(path, text); !stored) {
    return send_error(response, status_of(stored.error().code), stored.error(),
                      before ? reason_in_dmesg(path, *before) : std::string());
  }
  response.set_content("true", kJsonType);
}

}  // namespace rocefs
