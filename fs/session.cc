#include "fs/session.h"

#include "fs/fuse_server.h"

namespace rocefs {

Session::Session(std::unique_ptr<FuseServer> server) : server_(std::move(server)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(SessionOptions options, Tree& tree,
                                                 PollLoop& loop) {
  auto server = std::make_unique<FuseServer>(std::move(options), tree, loop);
  if (Result<void> created = server->create(); !created) return created.error();
  return std::unique_ptr<Session>(new Session(std::move(server)));
}

Result<void> Session::mount(const std::string& mount_point) {
  return server_->mount(mount_point);
}

int Session::descriptor() const {
  return server_->mounted_ ? fuse_session_fd(server_->session_) : -1;
}

std::optional<dev_t> Session::device() const {
  return server_->device_;
}

void Session::listen_at(const std::string& path, Answer<Fd> done) {
  server_->binder_ =
      std::make_unique<SocketBinder>(server_->mount_point_, path, server_->loop_, std::move(done));
}

Result<TakenOver> Session::take_over(const std::string& mount_point, int descriptor) {
  return server_->take_over(mount_point, descriptor);
}

}  // namespace rocefs
