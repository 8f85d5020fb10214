// Server: answers the page's requests over HTTP.
//   GET  /, /*.js, /*.css            the page
//   GET  /api/shape                  nodes and cables
//   GET  /api/feed?pin=PATH          server-sent events: messages of the feed (feed.h)
//   GET  /api/list?path=DIRECTORY    entries of a directory of the mount
//   GET  /api/file?path=FILE         its text
//   GET  /api/may-store              whether the token is right
//   GET  /metrics                    the mount's figures for Prometheus (metrics.h)
//   POST /api/store                  {"path": FILE, "text": TEXT}: one write(2), as echo
// Stores need the header X-Rocefs-Token. A failure answers {"errno": NAME, "reason": TEXT}, and for
// a store {"dmesg": LINE} where the mount has said why.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "tools/rocefs-view/feed.h"
#include "tools/rocefs-view/guard.h"
#include "tools/rocefs-view/metrics.h"
#include "tools/watch/mount_files.h"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace rocefs {

class ViewServer {
 public:
  // Listens at once, on a free port if `port` is 0. `files` outlives it. `stores`: with a token.
  static Result<std::unique_ptr<ViewServer>> listen(const MountFiles& files,
                                                    const std::string& address, uint16_t port,
                                                    bool stores, TimeNs interval);
  ~ViewServer();

  // Address of the page, with the token if there is one.
  std::string url() const;
  // Serves until stop(), or until the mount has ended.
  void run();
  // Any thread.
  void stop();

 private:
  ViewServer(const MountFiles& files, TimeNs interval);
  void add_routes();
  void send_shape(httplib::Response& response);
  void send_feed(const httplib::Request& request, httplib::Response& response);
  void send_list(const httplib::Request& request, httplib::Response& response);
  void send_file(const httplib::Request& request, httplib::Response& response);
  void store(const httplib::Request& request, httplib::Response& response);
  bool may_store(const httplib::Request& request) const;
  std::string reason_in_dmesg(const std::string& path) const;

  const MountFiles& files_;
  std::string address_;
  uint16_t port_ = 0;
  std::string token_;
  std::unique_ptr<Guard> guard_;
  Metrics metrics_;
  std::atomic<int> streams_{0};
  std::unique_ptr<httplib::Server> http_;
  Feed feed_;
};

}  // namespace rocefs
