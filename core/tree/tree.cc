#include "core/tree/tree.h"

#include <algorithm>
#include <cassert>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace rocefs {
namespace {

// `target` relative to the directory of `link`; its last component is always included
// (kernfs_get_target_path()).
std::string relative_target(std::string_view link, std::string_view target) {
  std::vector<std::string_view> from = split(link, "/");
  std::vector<std::string_view> to = split(target, "/");
  from.pop_back();
  size_t common = 0;
  while (common < from.size() && common + 1 < to.size() && from[common] == to[common]) ++common;
  std::string result;
  for (size_t i = common; i < from.size(); ++i) result += "../";
  for (size_t i = common; i < to.size(); ++i) {
    result += to[i];
    if (i + 1 < to.size()) result += '/';
  }
  return result;
}

}  // namespace

Tree::Tree(uid_t uid, gid_t gid, mode_t mode) : uid_(uid), gid_(gid), mode_(mode) {
  auto root = std::make_unique<Node>();
  root->ino = root->parent = kRootIno;
  root->mode = 0755;
  root->uid = uid;
  root->gid = gid;
  root->atime = root->mtime = date_now();
  nodes_.emplace(kRootIno, std::move(root));
  by_path_.emplace("", kRootIno);
}

// An inode number is a hash of the path: the same after a restart of the daemon, and for a node
// that comes back under the same path.
Tree::Node& Tree::add_quietly(std::string_view path, Kind kind) {
  assert(!path.empty() && path.front() != '/' && path.back() != '/');
  assert(!by_path_.contains(std::string(path)));
  size_t slash = path.rfind('/');
  std::string_view parent_path = slash == path.npos ? std::string_view{} : path.substr(0, slash);
  std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  Ino parent = add_directory(parent_path);
  ++version_;
  Ino ino = fnv1a64(path);
  while (ino <= kRootIno || nodes_.contains(ino)) ++ino;

  auto node = std::make_unique<Node>();
  node->ino = ino;
  node->parent = parent;
  node->kind = kind;
  node->name = name;
  node->uid = uid_;
  node->gid = gid_;
  node->atime = node->mtime = date();
  Node& added = *node;
  nodes_.emplace(ino, std::move(node));
  by_path_.emplace(path, ino);
  Node& directory = *find(parent);
  directory.children.push_back(ino);
  return added;
}

Tree::Node& Tree::add(std::string_view path, Kind kind) {
  Node& added = add_quietly(path, kind);
  if (listener_ && !filling_ && !find(added.parent)->changes) {
    listener_->entry_changed(added.parent, added.name);
  }
  return added;
}

Ino Tree::add_directory(std::string_view path, bool changes) {
  if (Node* there = resolve(path)) {
    assert(there->kind == Kind::kDirectory);
    there->changes |= changes;
    return there->ino;
  }
  Node& node = add(path, Kind::kDirectory);
  node.mode = 0755;
  node.changes = changes;
  return node.ino;
}

Ino Tree::add_link(std::string_view path, std::string_view target) {
  Node& node = add(path, Kind::kLink);
  node.mode = 0777;
  node.target = relative_target(path, target);
  return node.ino;
}

Ino Tree::add_link_out(std::string_view path, std::string_view target) {
  assert(target.starts_with('/'));
  Node& node = add(path, Kind::kLink);
  node.mode = 0777;
  node.target = target;
  return node.ino;
}

Ino Tree::add_socket(std::string_view path) {
  Node& node = add_quietly(path, Kind::kSocket);
  node.mode = 0666;
  return node.ino;
}

Ino Tree::add_file(std::string_view path, std::shared_ptr<File> file) {
  Node& node = add(path, Kind::kFile);
  node.mode = file->mode();
  if (file->writable() && (node.mode & 0022) == 0) {
    node.mode = mode_ & (file->readable() ? 0666 : 0222);
  }
  node.file = std::move(file);
  auto* attribute = dynamic_cast<Attribute*>(node.file.get());
  if (attribute && attribute->saved()) {
    attribute->set_change_listener([this, ino = node.ino] {
      if (changed_) changed_(ino);
    });
    if (changed_ && !filling_) changed_(node.ino);
  }
  return node.ino;
}

timespec Tree::date() const {
  return filling_ ? *filling_ : date_now();
}

// Nearest directory above `path` with entries that wait; null if there is none.
Tree::Node* Tree::unfilled_above(std::string_view path) {
  if (unfilled_.empty()) return nullptr;
  while (!path.empty()) {
    size_t slash = path.rfind('/');
    path = path.substr(0, slash == path.npos ? 0 : slash);
    Node* above = made(path);
    if (above && !filled(above->ino)) return above;
  }
  return nullptr;
}

void Tree::add_later(std::string_view path, Fill fill) {
  if (changed_ && !filling_) {
    add_directory(path);
    return fill();
  }
  if (Node* above = unfilled_above(path)) {
    unfilled_.at(above->ino)
        .fills.push_back(
            [this, path = std::string(path), fill = std::move(fill)] { add_later(path, fill); });
    return;
  }
  if (!filling_) ++version_;  // entries come that a known walk does not have
  Unfilled& waiting = unfilled_[add_directory(path)];
  if (waiting.fills.empty()) waiting.date = date();
  waiting.fills.push_back(std::move(fill));
}

bool Tree::fill(Ino directory) {
  auto waiting = unfilled_.extract(directory);
  if (!waiting) return false;
  std::optional<timespec> outer = std::exchange(filling_, waiting.mapped().date);
  for (const Fill& fill : waiting.mapped().fills) fill();
  filling_ = outer;
  return true;
}

// Rounds: each fill may add directories that wait.
void Tree::fill_where(const std::function<bool(Ino)>& wanted) {
  std::vector<Ino> found;
  do {
    found.clear();
    for (const auto& [ino, waiting] : unfilled_) {
      if (wanted(ino)) found.push_back(ino);
    }
    for (Ino ino : found) fill(ino);
  } while (!found.empty());
}

void Tree::date_all(const timespec& date) {
  for (auto& [ino, node] : nodes_) node->atime = node->mtime = date;
  for (auto& [ino, waiting] : unfilled_) waiting.date = date;
}

void Tree::remove(std::string_view path) {
  Node* node = resolve(path);
  assert(node && node->ino != kRootIno);
  Node* parent = find(node->parent);
  std::erase(parent->children, node->ino);
  Ino parent_ino = parent->ino;
  std::string name = node->name;
  std::erase_if(departed_, [](const auto& entry) { return entry.second.file.expired(); });
  drop(*node);
  if (listener_) listener_->entry_changed(parent_ino, name);
}

void Tree::drop(Node& node) {
  ++version_;
  for (Ino child_ino : std::exchange(node.children, {})) drop(*find(child_ino));
  Ino ino = node.ino;
  unfilled_.erase(ino);
  if (node.file) node.file->mark_removed();
  by_path_.erase(path_of(ino));
  if (node.refreshes) refreshes_.erase(ino);
  std::weak_ptr<File> file = std::exchange(node.file, nullptr);
  if (!file.expired()) departed_.insert_or_assign(ino, Departed{node, file});
  nodes_.erase(ino);
}

std::optional<Tree::Node> Tree::departed(Ino ino) const {
  auto it = departed_.find(ino);
  if (it == departed_.end()) return std::nullopt;
  std::shared_ptr<File> file = it->second.file.lock();
  if (!file) return std::nullopt;
  Node node = it->second.node;
  node.file = std::move(file);
  return node;
}

Tree::Node* Tree::find(Ino ino) {
  auto it = nodes_.find(ino);
  return it == nodes_.end() ? nullptr : it->second.get();
}

void Tree::set_refresh(Ino directory, std::function<void()> refresh) {
  Node* node = find(directory);
  assert(node && node->kind == Kind::kDirectory && node->changes);
  node->refreshes = true;
  refreshes_[directory] = std::move(refresh);
}

void Tree::refresh(const Node& directory) {
  if (directory.refreshes) refreshes_.at(directory.ino)();
}

const std::vector<Ino>& Tree::entries(Ino directory) {
  fill(directory);
  Node* node = find(directory);
  assert(node && node->kind == Kind::kDirectory);
  refresh(*node);
  return node->children;
}

Tree::Node* Tree::child(Ino parent, std::string_view name) {
  if (Node* directory = find(parent)) refresh(*directory);
  std::string path = path_of(parent);
  if (!path.empty()) path += '/';
  path += name;
  return resolve(path);
}

Tree::Node* Tree::resolve(std::string_view path) {
  for (;;) {
    if (Node* there = made(path)) return there;
    Node* above = unfilled_above(path);
    if (!above) return nullptr;
    fill(above->ino);
  }
}

Tree::Node* Tree::made(std::string_view path) {
  auto it = by_path_.find(std::string(path));
  return it == by_path_.end() ? nullptr : find(it->second);
}

Tree::Node* Tree::follow(std::string_view path) {
  constexpr int kMaxLinks = 40;  // as the kernel's
  std::vector<std::string> rest;
  auto push = [&](std::string_view more) {
    std::vector<std::string_view> parts = split(more, "/");
    rest.insert(rest.end(), parts.rbegin(), parts.rend());
  };
  push(path);
  Node* at = find(kRootIno);
  for (int links = 0; !rest.empty();) {
    std::string part = std::move(rest.back());
    rest.pop_back();
    if (part == ".") continue;
    if (at->kind != Kind::kDirectory) return nullptr;
    Node* next = part == ".." ? find(at->parent) : child(at->ino, part);
    if (!next) return nullptr;
    if (next->kind == Kind::kLink) {
      if (++links > kMaxLinks || next->target.starts_with('/')) return nullptr;
      push(next->target);
    } else {
      at = next;
    }
  }
  return at;
}

void Tree::each_made_file(const Visit& visit) {
  for (const auto& [path, ino] : by_path_) {
    if (Node* node = find(ino); node->file) visit(path, node->file);
  }
}

std::string Tree::path_of(Ino ino) {
  std::string path;
  for (Node* node = find(ino); node && node->ino != kRootIno; node = find(node->parent)) {
    path = path.empty() ? node->name : node->name + "/" + path;
  }
  return path;
}

}  // namespace rocefs
