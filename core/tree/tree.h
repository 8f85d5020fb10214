// Tree: the mounted name space. Directories, links, files and sockets, added by the layers by path,
// served by fs. Directories may gain and lose entries while mounted (flows, QPs).
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
    std::string target;          // link: target, as readlink(2) returns it
    std::shared_ptr<File> file;  // file
    std::vector<Ino> children;   // directory: entries in order of creation
    bool changes = false;        // entries of this directory come and go: the kernel may not cache
    bool refreshes = false;      // set_refresh()
  };

  // A cache of names, positive and negative (the kernel's dcache).
  class Listener {
   public:
    virtual ~Listener() = default;
    // An entry was added or removed.
    virtual void entry_changed(Ino parent, const std::string& name) = 0;
    // Runs `then` on the control thread when the cache knows all changes so far.
    virtual void when_known(Task then) = 0;
  };

  // Nodes belong to uid:gid at first, and are dated when they are added.
  // Files that can be written have the bits of `mode` that they can use, unless all users may write
  // them.
  Tree(uid_t uid, gid_t gid, mode_t mode = 0644);

  // Paths are relative to the mount point, without a leading slash. Missing parents are added.
  // Adding an existing node is a programming error, except for directories, which are shared.
  Ino add_directory(std::string_view path, bool changes = false);
  // `target` is a path in the tree; the link's text is relative to its own directory, as in sysfs.
  Ino add_link(std::string_view path, std::string_view target);
  // A link out of the tree: `target` is an absolute path.
  Ino add_link_out(std::string_view path, std::string_view target);
  // Takes the mode from file->mode(), or the tree's.
  Ino add_file(std::string_view path, std::shared_ptr<File> file);
  // A unix socket, of mode 0666. The listener is not called: the kernel itself creates it, or the
  // tree is not served yet.
  Ino add_socket(std::string_view path);
  // Adds a directory with entries that are made when they are first looked for: `fill` adds them
  // when the directory is listed, or a path below it is followed and does not exist yet. Several
  // fills of one directory run in their order. A directory below one that is not filled is added
  // with that one's entries. Entries made by a fill count as there from the time of this call:
  // nobody is told of them. Fills at once if changes of settings are watched.
  using Fill = std::function<void()>;
  void add_later(std::string_view path, Fill fill);
  // Makes the entries that wait for it; false if there are none.
  bool fill(Ino directory);
  bool filled(Ino directory) const { return !unfilled_.contains(directory); }
  // Makes the entries that wait for a directory with `wanted`, and those below it, if the directory
  // there is wanted.
  void fill_where(const std::function<bool(Ino directory)>& wanted);
  // Removes the node and its descendants; their files answer ENODEV from now on.
  void remove(std::string_view path);

  Node* find(Ino ino);
  // A removed node whose file is still open, for fstat(2). Empty if there is none.
  std::optional<Node> departed(Ino ino) const;
  Node* child(Ino parent, std::string_view name);
  // Does not follow links. nullptr if there is no such node.
  Node* resolve(std::string_view path);
  // The same without entries that nobody has looked for (add_later()).
  Node* made(std::string_view path);
  // Follows links on the way and at the end, as open(2) does; nullptr where one leads out of the
  // tree.
  Node* follow(std::string_view path);
  std::string path_of(Ino ino);
  // `refresh` runs before a name is looked up in the directory, and before entries(): it brings
  // them up to date, so that what nobody looks at costs nothing. For a directory that changes.
  void set_refresh(Ino directory, std::function<void()> refresh);
  // Changes when a name comes or goes, or a mode or owner changes.
  uint64_t version() const { return version_; }
  // A mode or owner was changed.
  void note_access() { ++version_; }
  // All entries, up to date.
  const std::vector<Ino>& entries(Ino directory);
  // Visits every file under its own path, in no order, but not files that nobody has looked for
  // (add_later()).
  using Visit = std::function<void(const std::string& path, const std::shared_ptr<File>&)>;
  void each_made_file(const Visit& visit);

  // Null removes the listener.
  void set_listener(Listener* listener) { listener_ = listener; }
  // Runs `then` when its caller can see all changes of the tree: no cached name is stale.
  void when_known(Task then) {
    if (listener_) return listener_->when_known(std::move(then));
    then();
  }
  // Called when the text of a setting (Attribute::saved) has changed, and when one is added.
  void set_change_listener(std::function<void(Ino)> listener) { changed_ = std::move(listener); }
  // Sets the date of every node.
  void date_all(const timespec& date);

 private:
  struct Departed {
    Node node;  // without its file
    std::weak_ptr<File> file;
  };

  struct Unfilled {
    std::vector<Fill> fills;
    timespec date{};
  };

  Node* unfilled_above(std::string_view path);
  timespec date() const;
  Node& add(std::string_view path, Kind kind);
  Node& add_quietly(std::string_view path, Kind kind);
  void drop(Node& node);
  void refresh(const Node& directory);

  std::unordered_map<Ino, std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, Ino> by_path_;
  std::unordered_map<Ino, Departed> departed_;
  std::unordered_map<Ino, std::function<void()>> refreshes_;  // by directory
  std::unordered_map<Ino, Unfilled> unfilled_;                // directories
  std::optional<timespec> filling_;                           // a fill runs: date of its entries
  Listener* listener_ = nullptr;
  std::function<void(Ino)> changed_;
  uint64_t version_ = 0;
  uid_t uid_;
  gid_t gid_;
  mode_t mode_;
};

}  // namespace rocefs
