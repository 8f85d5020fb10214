// FuseServer: the libfuse session of one mount and the handlers of its requests. Private to fs/.
#pragma once

#include <fuse_lowlevel.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fs/channel.h"
#include "fs/notifier.h"
#include "fs/requests.h"
#include "fs/saved_session.h"
#include "fs/session_options.h"
#include "fs/slot_table.h"
#include "fs/socket_binder.h"

namespace rocefs {

class FuseServer final : public ChannelUser {
 public:
  FuseServer(SessionOptions options, Tree& tree, PollLoop& loop);
  ~FuseServer() override;

  Result<void> create();
  Result<void> mount(const std::string& mount_point);
  Result<TakenOver> take_over(const std::string& mount_point, int descriptor);
  Result<void> serve(const std::string& mount_point, int descriptor);
  OpenSlot reopen(const SavedHandle& saved);
  std::shared_ptr<const Listing> list(const Tree::Node& directory);
  void release_directory(Ino ino, uint64_t handle);
  void note_attributes(Ino ino);
  void receive();
  void serve_until_drained();
  void end_mount();

  static const fuse_lowlevel_ops& operations();
  static FuseServer& of(fuse_req_t request) {
    return static_cast<FuseServer&>(*static_cast<ChannelUser*>(fuse_req_userdata(request)));
  }
  Channel& channel() override { return channel_; }
  void interrupt(uint64_t key) override { requests_->interrupt(key); }

  FuseServer(const FuseServer&) = delete;
  FuseServer& operator=(const FuseServer&) = delete;

  // How long the kernel may keep what it learnt of a node, in seconds.
  double timeout(const Tree::Node& node) {
    Tree::Node* parent = tree_.find(node.parent);
    return node.changes || (parent && parent->changes) ? 0.0 : 3600.0;
  }
  // The same of its attributes. lseek(2) asks for those of a file without an end each time, and
  // hears that it has none.
  double attribute_timeout(const Tree::Node& node) {
    return node.file && !node.file->has_end() ? 0.0 : timeout(node);
  }
  struct stat stat_of(const Tree::Node& node);

  SessionOptions options_;
  Tree& tree_;
  PollLoop& loop_;
  fuse_session* session_ = nullptr;
  std::string mount_point_;
  std::optional<dev_t> device_;
  std::unique_ptr<SocketBinder> binder_;
  std::shared_ptr<Notifier> notifier_;
  std::shared_ptr<Requests> requests_;
  std::unique_ptr<Journal> own_journal_;  // for a session without takeover
  Journal& journal_;
  SavedSession& saved_;
  Channel channel_;
  SlotTable<OpenSlot> files_;
  SlotTable<DirectorySlot> directories_;
  std::map<Ino, std::weak_ptr<const Listing>> listings_;  // the newest of each that is open
  bool mounted_ = false;
  bool taken_over_ = false;
};

}  // namespace rocefs
