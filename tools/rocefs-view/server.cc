#include "tools/rocefs-view/server.h"

#include <httplib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/rocefs-view/page.h"
#include "tools/watch/shape.h"

namespace rocefs {
namespace {

using nlohmann::json;

// A page has one stream; each holds a thread.
constexpr int kMaxStreams = 24;
constexpr size_t kThreads = kMaxStreams + 8;
constexpr size_t kMaxBody = 64 << 10;
constexpr size_t kMaxPins = 64;
constexpr char kJson[] = "application/json";

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void send_error(httplib::Response& response, int status, const Error& error,
                std::string line = {}) {
  json body{{"errno", ::strerrorname_np(error.code) ? ::strerrorname_np(error.code) : "EIO"},
            {"reason", error.reason}};
  if (!line.empty()) body["dmesg"] = std::move(line);
  response.status = status;
  response.set_content(dumped(body), kJson);
}

int status_of(int code) {
  return code == ENOENT || code == ENODEV ? 404 : code == EACCES || code == EPERM ? 403 : 400;
}

const char* name_of(Shape::Node::Kind kind) {
  switch (kind) {
    case Shape::Node::Kind::kDevice:
      return "device";
    case Shape::Node::Kind::kSwitch:
      return "switch";
    case Shape::Node::Kind::kUplink:
      break;
  }
  return "uplink";
}

}  // namespace

ViewServer::ViewServer(const MountFiles& files, TimeNs interval)
    : files_(files),
      metrics_(files),
      http_(std::make_unique<httplib::Server>()),
      feed_(files, interval, [this] { http_->stop(); }) {}

ViewServer::~ViewServer() {
  stop();
}

Result<std::unique_ptr<ViewServer>> ViewServer::listen(const MountFiles& files,
                                                       const std::string& address, uint16_t port,
                                                       bool stores, TimeNs interval) {
  std::unique_ptr<ViewServer> server(new ViewServer(files, interval));
  if (stores && (server->token_ = new_token()).empty()) {
    return Error{EIO, "no random numbers for a token"};
  }
  server->add_routes();
  server->address_ = address;
  errno = 0;
  const int bound = port == 0 ? server->http_->bind_to_any_port(address.c_str())
                    : server->http_->bind_to_port(address.c_str(), port) ? port
                                                                         : -1;
  if (bound <= 0) {
    const int code = errno ? errno : EADDRINUSE;
    return errorf(code, "{}:{}: {}; --listen {}:0 takes a free port", address, port,
                  std::strerror(code), address);
  }
  server->port_ = static_cast<uint16_t>(bound);
  server->guard_ = std::make_unique<Guard>(server->port_, server->token_);
  return server;
}

std::string ViewServer::url() const {
  const bool ipv6 = address_.find(':') != address_.npos;
  const std::string url =
      fmt::format("http://{}:{}/", ipv6 ? "[" + address_ + "]" : address_, port_);
  return token_.empty() ? url : url + "#" + token_;
}

void ViewServer::run() {
  http_->listen_after_bind();
}

void ViewServer::stop() {
  feed_.stop();
  http_->stop();
}

bool ViewServer::may_store(const httplib::Request& request) const {
  return guard_->may_store(request.get_header_value("Host"), request.get_header_value("Origin"),
                           request.get_header_value("X-Rocefs-Token"));
}

void ViewServer::add_routes() {
  http_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http_->set_payload_max_length(kMaxBody);
  // The library's own choice, SO_REUSEPORT, would let two servers share a port.
  http_->set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http_->set_default_headers(
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
        "'self'; img-src 'self' data: blob:; base-uri 'none'; form-action "
        "'none'; frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cache-Control", "no-store"}});
  http_->set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        if (guard_->own_host(request.get_header_value("Host"))) {
          return httplib::Server::HandlerResponse::Unhandled;
        }
        send_error(response, 403, {EPERM, "asked for by a name that is not this server's"});
        return httplib::Server::HandlerResponse::Handled;
      });
  http_->Get("/api/shape", [this](const httplib::Request&, httplib::Response& response) {
    send_shape(response);
  });
  http_->Get("/api/feed", [this](const httplib::Request& request, httplib::Response& response) {
    send_feed(request, response);
  });
  http_->Get("/api/list", [this](const httplib::Request& request, httplib::Response& response) {
    send_list(request, response);
  });
  http_->Get("/api/file", [this](const httplib::Request& request, httplib::Response& response) {
    send_file(request, response);
  });
  http_->Get("/api/may-store",
             [this](const httplib::Request& request, httplib::Response& response) {
               response.set_content(may_store(request) ? "true" : "false", kJson);
             });
  http_->Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    Result<std::string> text = metrics_.scrape();
    if (!text) return send_error(response, 503, text.error());
    response.set_content(*text, kMetricsType);
  });
  http_->Post("/api/store", [this](const httplib::Request& request, httplib::Response& response) {
    store(request, response);
  });
  http_->Get("/.*", [](const httplib::Request& request, httplib::Response& response) {
    if (const PageFile* file = page_file(request.path)) {
      response.set_content(file->content.data(), file->content.size(), std::string(file->type));
    } else {
      send_error(response, 404, {ENOENT, "no such page"});
    }
  });
}

void ViewServer::send_shape(httplib::Response& response) {
  Result<Shape> shape = shape_of(files_);
  if (!shape) return send_error(response, status_of(shape.error().code), shape.error());
  json nodes = json::array(), cables = json::array();
  for (const Shape::Node& node : shape->nodes) {
    nodes.push_back({{"name", node.name}, {"kind", name_of(node.kind)}});
  }
  for (const Shape::Cable& cable : shape->cables) {
    cables.push_back({{"a", cable.a},
                      {"b", cable.b},
                      {"aPort", cable.a_port},
                      {"bPort", cable.b_port},
                      {"out", cable.out},
                      {"back", cable.back}});
  }
  response.set_content(dumped({{"mount", files_.mount_point()},
                               {"stores", guard_->stores()},
                               {"nodes", std::move(nodes)},
                               {"cables", std::move(cables)}}),
                       kJson);
}

void ViewServer::send_feed(const httplib::Request& request, httplib::Response& response) {
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

void ViewServer::send_list(const httplib::Request& request, httplib::Response& response) {
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
  response.set_content(dumped(list), kJson);
}

void ViewServer::send_file(const httplib::Request& request, httplib::Response& response) {
  const std::string path = request.get_param_value("path");
  // To open a device is to do something.
  if (path.starts_with("dev/") || path.find("..") != path.npos) {
    return send_error(response, 403, errorf(EPERM, "{}: a device", path));
  }
  Result<std::string> text = files_.read(path);
  if (!text) return send_error(response, status_of(text.error().code), text.error());
  response.set_content(*text, "text/plain; charset=utf-8");
}

// The mount's line about a store that it has refused: the last one that names the file.
std::string ViewServer::reason_in_dmesg(const std::string& path) const {
  Result<std::string> log = files_.read("kernel/debug/rocefs/dmesg");
  if (!log) return {};
  const size_t found = log->rfind(path.substr(path.rfind('/') + 1));
  if (found == log->npos) return {};
  const size_t begin = log->rfind('\n', found) + 1;
  return log->substr(begin, log->find('\n', found) - begin);
}

void ViewServer::store(const httplib::Request& request, httplib::Response& response) {
  if (!guard_->stores()) return send_error(response, 403, {EROFS, "--read-only: nobody may store"});
  if (!may_store(request)) {
    return send_error(response, 403,
                      {EPERM, "only a page that was opened with the token may store"});
  }
  const json body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("path") || !body["path"].is_string() ||
      !body.contains("text") || !body["text"].is_string()) {
    return send_error(response, 400, {EINVAL, "{\"path\": FILE, \"text\": TEXT} is wanted"});
  }
  const std::string path = body["path"], text = body["text"];
  if (Result<void> stored = files_.store(path, text); !stored) {
    return send_error(response, status_of(stored.error().code), stored.error(),
                      reason_in_dmesg(path));
  }
  response.set_content("true", kJson);
}

}  // namespace rocefs
