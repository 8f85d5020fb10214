// PageServer: an HTTP server of the page, and of what others add to it. Answers nobody who asks by
// a name that is not this server's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "tools/rocefs-view/guard.h"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace rocefs {

inline constexpr char kJsonType[] = "application/json";
// Streams that may be open: each holds a thread.
inline constexpr int kMaxStreams = 24;

// {"errno": NAME, "reason": TEXT}, and {"dmesg": LINE} unless it is empty.
void send_error(httplib::Response& response, int status, const Error& error, std::string line = {});

class PageServer {
 public:
  // Listens at once, on a free port if `port` is 0. `stores`: with a token.
  static Result<std::unique_ptr<PageServer>> listen(const std::string& address, uint16_t port,
                                                    bool stores);
  ~PageServer();

  // For routes; before run(). Routes run on threads of the server, at the same time.
  httplib::Server& http() { return *http_; }
  bool stores() const { return guard_.stores(); }
  // Whether the request has the token, and comes from the page or from no browser.
  bool may_store(const httplib::Request& request) const;
  // Address of the page, with the token if there is one.
  std::string url() const;
  // Serves until stop().
  void run();
  // Any thread.
  void stop();

 private:
  PageServer(std::string address, uint16_t port, std::string token,
             std::unique_ptr<httplib::Server> http);
  std::optional<Error> refusal(const httplib::Request& request) const;

  const std::string address_;
  const uint16_t port_;
  const std::string token_;
  const Guard guard_;
  const std::unique_ptr<httplib::Server> http_;
};

}  // namespace rocefs
