#include "tools/rocefs-view/page_server.h"

#include <httplib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/page/page.h"

namespace rocefs {
namespace {

// Connections that send nothing hold a thread each for a while.
constexpr size_t kThreads = kMaxStreams + 104;
constexpr size_t kMaxBody = 64 << 10;

void add_page(httplib::Server& http) {
  http.Get("/([a-z]+\\.[a-z]+)?", [](const httplib::Request& request, httplib::Response& response) {
    response.status = 404;
    if (const PageFile* file = page_file(request.path)) {
      response.status = 200;
      response.set_content(file->content.data(), file->content.size(), std::string(file->type));
    }
  });
}

// Reason of an answer of the library's own.
Error reason_of(int status) {
  switch (status) {
    case 404:
      return {ENOENT, "no such page"};
    case 413:
      return errorf(EFBIG, "a body has at most {} KiB", kMaxBody >> 10);
    case 414:
      return errorf(ENAMETOOLONG, "an address has at most {} octets",
                    CPPHTTPLIB_REQUEST_URI_MAX_LENGTH);
    case 416:
      return {EINVAL, "no such range"};
  }
  if (status < 500) return {EINVAL, "not a request of HTTP that this server takes"};
  return errorf(EIO, "the server failed: HTTP status {}", status);
}

// Bounds, and what keeps a page to this server.
void prepare(httplib::Server& http) {
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http.set_payload_max_length(kMaxBody);
  http.set_read_timeout(5);
  http.set_keep_alive_timeout(2);
  http.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty()) send_error(response, response.status, reason_of(response.status));
  });
  // The library's own choice, SO_REUSEPORT, would let two servers share a port.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http.set_default_headers({{"Content-Security-Policy",
                             "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                             "'self'; img-src 'self' data: blob:; base-uri 'none'; form-action "
                             "'none'; frame-ancestors 'none'"},
                            {"X-Content-Type-Options", "nosniff"},
                            {"Referrer-Policy", "no-referrer"},
                            {"Cache-Control", "no-store"}});
}

}  // namespace

void send_error(httplib::Response& response, int status, const Error& error, std::string line) {
  const char* name = ::strerrorname_np(error.code);
  nlohmann::json body{{"errno", name ? name : "EIO"}, {"reason", error.reason}};
  if (!line.empty()) body["dmesg"] = std::move(line);
  response.status = status;
  response.set_content(body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       kJsonType);
}

PageServer::PageServer(std::string address, uint16_t port, std::string token,
                       std::unique_ptr<httplib::Server> http)
    : address_(std::move(address)),
      port_(port),
      token_(std::move(token)),
      guard_(port, token_),
      http_(std::move(http)) {
  http_->set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        // The library would copy each range, of which a request of 8 KiB has thousands. A server
        // may ignore them.
        const_cast<httplib::Request&>(request).ranges.clear();
        const std::optional<Error> why = refusal(request);
        if (!why) return httplib::Server::HandlerResponse::Unhandled;
        // A body that was not read would be taken for the next request.
        response.set_header("Connection", "close");
        send_error(response, 403, *why);
        return httplib::Server::HandlerResponse::Handled;
      });
  add_page(*http_);
}

// Runs before a body is read. The library limits the length of a body only where Content-Length
// tells it, and before it unpacks it.
std::optional<Error> PageServer::refusal(const httplib::Request& request) const {
  if (!guard_.own_host(request.get_header_value("Host"))) {
    return Error{EPERM, "asked for by a name that is not this server's"};
  }
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return Error{EPERM, "asked for by another site's page"};
  }
  if (request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding")) {
    return Error{EINVAL, "a body has a Content-Length, and no encoding"};
  }
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (!stores()) return Error{EROFS, "--read-only: nobody may store"};
  if (!may_store(request)) {
    return Error{EPERM, "only a page that was opened with the token may store"};
  }
  return std::nullopt;
}

bool PageServer::may_store(const httplib::Request& request) const {
  return guard_.may_store(request.get_header_value("Host"), request.get_header_value("Origin"),
                          request.get_header_value("X-Rocefs-Token"));
}

PageServer::~PageServer() {
  stop();
}

Result<std::unique_ptr<PageServer>> PageServer::listen(const std::string& address, uint16_t port,
                                                       bool stores) {
  std::string token;
  if (stores && (token = new_token()).empty()) return Error{EIO, "no random numbers for a token"};
  auto http = std::make_unique<httplib::Server>();
  prepare(*http);
  errno = 0;
  const int bound = port == 0 ? http->bind_to_any_port(address.c_str())
                    : http->bind_to_port(address.c_str(), port) ? port
                                                                : -1;
  if (bound <= 0) {
    const int code = errno ? errno : EADDRINUSE;
    const std::string hint =
        code == EADDRINUSE ? fmt::format("; --listen {}:0 takes a free port", address) : "";
    return errorf(code, "{}:{}: {}{}", address, port, std::strerror(code), hint);
  }
  return std::unique_ptr<PageServer>(
      new PageServer(address, static_cast<uint16_t>(bound), std::move(token), std::move(http)));
}

std::string PageServer::url() const {
  const bool ipv6 = address_.find(':') != address_.npos;
  const std::string url =
      fmt::format("http://{}:{}/", ipv6 ? "[" + address_ + "]" : address_, port_);
  return token_.empty() ? url : url + "#" + token_;
}

void PageServer::run() {
  http_->listen_after_bind();
}

void PageServer::stop() {
  http_->stop();
}

}  // namespace rocefs
