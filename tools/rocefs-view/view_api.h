// ViewApi: what the page of a live mount asks for, over HTTP.
//   GET  /api/shape                  nodes and cables
//   GET  /api/feed?pin=PATH          server-sent events: messages of the feed (message.h)
//   GET  /api/list?path=DIRECTORY    entries of a directory of the mount
//   GET  /api/file?path=FILE         its text
//   GET  /api/may-store              whether the token is right
//   GET  /metrics                    the mount's figures for Prometheus (metrics.h)
//   POST /api/store                  {"path": FILE, "text": TEXT}: one write(2), as echo
// Stores need the header X-Rocefs-Token. A failure is that of send_error(), for a store with the
// line of dmesg that says why.
#pragma once

#include <atomic>
#include <string>

#include "core/base/result.h"
#include "tools/rocefs-view/feed.h"
#include "tools/rocefs-view/metrics.h"
#include "tools/rocefs-view/page_server.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

// Routes are called on threads of the server.
class ViewApi {
 public:
  // Adds its routes. The others outlive it; it outlives the server's run().
  ViewApi(PageServer& server, const MountFiles& files, Feed& feed);

 private:
  void send_feed(const httplib::Request& request, httplib::Response& response);
  void send_list(const httplib::Request& request, httplib::Response& response);
  void send_file(const httplib::Request& request, httplib::Response& response);
  void store(const httplib::Request& request, httplib::Response& response);
  std::string reason_in_dmesg(const std::string& path, const std::string& before) const;

  const PageServer& server_;
  const MountFiles& files_;
  Feed& feed_;
  Metrics metrics_;
  std::atomic<int> streams_{0};
};

}  // namespace rocefs
