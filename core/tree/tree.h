// Tree: the name space that is mounted. Directories, links, files and sockets, built by the layers
// through paths, served by fs. Directories may gain and lose entries while mounted (flows, later
// QPs).
//
// Owned by the control thread; before the mount is served, by the thread that builds it.
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/task.h"
#include "core/tree/file.h"

namespace rocefs {

using Ino = uint64_t;
inline constexpr Ino kRootIno = 1;

class Tree {
 public:
  enum class Kind { kDirectory, kLink, kFile, kSocket };

  struct Node {
    Ino ino = 0;
    Ino parent = 0;
    Kind kind = Kind::kDirectory;
    std::string name;
    mode_t mode = 0;  // permission bits
    uid_t uid = 0;
    gid_t gid = 0;
    timespec atime{};
    timespec mtime{};
    std::string target;          // of a link, as readlink(2) tells it
    std::shared_ptr<File> file;  // of a file
    std::vector<Ino> children;   // of a directory, in order of creation
    bool changes = false;        // entries of this directory come and go: the kernel may not cache
  };

  // Whoever remembers names, as the kernel does, and that there are none.
  class Listener {
   public:
    virtual ~Listener() = default;
    // An entry has come or gone.
    virtual void entry_changed(Ino parent, const std::string& name) = 0;
    // Runs `then` on the control thread when every change until now is known everywhere.
    virtual void when_known(Task then) = 0;
  };

  // Every node belongs to uid:gid at first, and is dated when it is added.
  Tree(uid_t uid, gid_t gid);

  // Paths are relative to the mount point, without a leading slash. Missing parents are made.
  // Adding what is there already is a programming error, but for directories, which are shared.
  Ino add_directory(std::string_view path, bool changes = false);
  // `target` is a path in the tree; the link holds it relative to its own place, as sysfs does.
  Ino add_link(std::string_view path, std::string_view target);
  // A link out of the tree: `target` is an absolute path of the reader's.
  Ino add_link_out(std::string_view path, std::string_view target);
  // The mode is the one that the file tells.
  Ino add_file(std::string_view path, std::shared_ptr<File> file);
  // A unix socket, of mode 0666. The listener is not told: it is the kernel that makes one, or the
  // tree is not served yet.
  Ino add_socket(std::string_view path);
  // Takes the node and all below it out; files in it answer ENODEV from now on.
  void remove(std::string_view path);

  Node* find(Ino ino);
  // A file that has left and is still open, as it was: fstat(2) asks. Nothing if there is none.
  std::optional<Node> departed(Ino ino) const;
  Node* child(Ino parent, std::string_view name);
  // Follows no links. nullptr if there is none.
  Node* resolve(std::string_view path);
  // Follows links on the way and at the end, as open(2) does; nullptr where one leads out.
  Node* follow(std::string_view path);
  std::string path_of(Ino ino);
  // Every file under its own path, in no order.
  void each_file(
      const std::function<void(const std::string& path, const std::shared_ptr<File>&)>& visit);

  // Null ends it.
  void set_listener(Listener* listener) { listener_ = listener; }
  // What `then` answers, its caller sees in the tree: no name is stale, present or absent.
  void when_known(Task then) {
    if (listener_) return listener_->when_known(std::move(then));
    then();
  }
  // Told when the text of a setting (Attribute::kept) has changed, and when one comes.
  void set_change_listener(std::function<void(Ino)> listener) { changed_ = std::move(listener); }
  // Dates every node.
  void date_all(const timespec& date);

 private:
  struct Departed {
    Node node;  // without its file
    std::weak_ptr<File> file;
  };

  Node& add(std::string_view path, Kind kind);
  Node& add_quietly(std::string_view path, Kind kind);
  void drop(Node& node);

  std::unordered_map<Ino, std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, Ino> by_path_;
  std::unordered_map<Ino, Departed> departed_;
  Listener* listener_ = nullptr;
  std::function<void(Ino)> changed_;
  uid_t uid_;
  gid_t gid_;
};

}  // namespace rocefs
