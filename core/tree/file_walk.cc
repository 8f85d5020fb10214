#include "core/tree/file_walk.h"

#include <fnmatch.h>

#include <utility>

#include "core/base/text.h"

namespace rocefs {

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?") != path.npos;
}

FileWalk::FileWalk(Tree& tree, std::vector<std::string> patterns, std::optional<Caller> reader)
    : tree_(tree), patterns_(std::move(patterns)), reader_(reader) {}

void FileWalk::restart() {
  frames_.clear();
  pattern_ = 0;
  repeats_ = true;
}

// As the kernel's acl_permission_check(); `access` as in the bits for others.
bool FileWalk::may(const Tree::Node& node, mode_t access) const {
  if (!reader_) return true;
  if (reader_->uid == 0) return (node.mode & (access * 0111)) != 0;
  const mode_t shift = reader_->uid == node.uid ? 6 : reader_->gid == node.gid ? 3 : 0;
  return (node.mode >> shift & access) == access;
}

// Whether the reader may search the directories above.
bool FileWalk::may_reach(const Tree::Node& node) const {
  if (!reader_) return true;
  for (const Tree::Node* at = &node; at->ino != kRootIno;) {
    at = tree_.find(at->parent);
    if (!at || !may(*at, 1)) return false;
  }
  return true;
}

void FileWalk::enter(const Tree::Node& directory, std::string path, size_t component) {
  repeats_ &= !directory.refreshes;
  if (!may(directory, 1)) return;
  const std::string& name = components_[component];
  std::vector<Ino> entries;
  if (!is_pattern(name)) {
    const Tree::Node* entry = tree_.child(directory.ino, name);
    if (!entry) return;
    entries = {entry->ino};
  } else {
    if (!may(directory, 4)) return;
    entries = tree_.entries(directory.ino);
  }
  frames_.push_back({std::move(path), component, std::move(entries)});
}

std::optional<FileWalk::Found> FileWalk::next(size_t& budget) {
  while (budget > 0) {
    if (frames_.empty()) {
      if (pattern_ == patterns_.size()) return std::nullopt;
      components_.clear();
      for (std::string_view part : split(patterns_[pattern_++], "/"))
        components_.emplace_back(part);
      if (!components_.empty()) enter(*tree_.find(kRootIno), {}, 0);
      continue;
    }
    Frame& frame = frames_.back();
    if (frame.at == frame.entries.size()) {
      frames_.pop_back();
      continue;
    }
    --budget;
    const Tree::Node* node = tree_.find(frame.entries[frame.at++]);
    if (!node) continue;
    const std::string& component = components_[frame.component];
    if (is_pattern(component) &&
        ::fnmatch(component.c_str(), node->name.c_str(), FNM_NOESCAPE) != 0) {
      continue;
    }
    std::string path = frame.path.empty() ? node->name : frame.path + "/" + node->name;
    if (node->kind == Tree::Kind::kLink) {
      node = tree_.follow(tree_.path_of(node->ino));
      if (!node || !may_reach(*node)) continue;
    }
    const size_t below = frame.component + 1;
    if (below == components_.size()) {
      if (node->file && may(*node, 4)) return Found{std::move(path), node->file};
    } else if (node->kind == Tree::Kind::kDirectory) {
      enter(*node, std::move(path), below);
    }
  }
  return std::nullopt;
}

std::vector<std::string> matching_files(Tree& tree, std::string_view pattern) {
  if (!is_pattern(pattern)) return {std::string(pattern)};
  FileWalk walk(tree, {std::string(pattern)});
  std::vector<std::string> paths;
  size_t budget = SIZE_MAX;
  while (std::optional<FileWalk::Found> found = walk.next(budget)) {
    paths.push_back(std::move(found->path));
  }
  return paths;
}

}  // namespace rocefs
