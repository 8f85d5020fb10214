#include "core/tree/file_walk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/text.h"

namespace rocefs {

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?") != path.npos;
}

// Greedy: what follows a * is looked for as soon as possible, and again one octet later.
bool matches(std::string_view component, std::string_view name) {
  size_t at = 0, star = component.npos, after = 0;
  for (size_t i = 0; i < name.size();) {
    if (at < component.size() && component[at] == '*') {
      star = at++;
      after = i;
    } else if (at < component.size() && (component[at] == '?' || component[at] == name[i])) {
      ++at;
      ++i;
    } else if (star != component.npos) {
      at = star + 1;
      i = ++after;
    } else {
      return false;
    }
  }
  return component.find_first_not_of('*', at) == component.npos;
}

Result<void> FileWalk::check(std::string_view pattern) {
  const std::vector<std::string_view> components = split(pattern, "/");
  auto too_long = [](std::string_view component) { return component.size() > kMaxComponent; };
  if (components.size() > kMaxComponents ||
      std::any_of(components.begin(), components.end(), too_long)) {
    return Error{ENAMETOOLONG, "a path is longer than any of the tree"};
  }
  return {};
}

FileWalk::FileWalk(Tree& tree, std::vector<std::string> patterns, std::optional<TreeUser> reader)
    : tree_(tree), patterns_(std::move(patterns)), reader_(std::move(reader)) {}

void FileWalk::restart() {
  frames_.clear();
  pattern_ = 0;
  looked_ = 0;
  repeats_ = true;
}

void FileWalk::enter(const Tree::Node& directory, std::string path, size_t component, int links) {
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
  frames_.push_back({std::move(path), component, links, std::move(entries)});
}

std::optional<FileWalk::Found> FileWalk::next(size_t& budget) {
  constexpr int kMaxLinks = 3;
  while (budget > 0) {
    if (frames_.empty()) {
      if (pattern_ == patterns_.size()) return std::nullopt;
      components_.clear();
      for (std::string_view part : split(patterns_[pattern_++], "/"))
        components_.emplace_back(part);
      if (!components_.empty()) enter(*tree_.find(kRootIno), {}, 0, 0);
      continue;
    }
    Frame& frame = frames_.back();
    if (frame.at == frame.entries.size()) {
      frames_.pop_back();
      continue;
    }
    --budget;
    ++looked_;
    const Tree::Node* node = tree_.find(frame.entries[frame.at++]);
    if (!node) continue;
    const std::string& component = components_[frame.component];
    if (is_pattern(component) && !matches(component, node->name)) continue;
    std::string path = frame.path.empty() ? node->name : frame.path + "/" + node->name;
    int links = frame.links;
    if (node->kind == Tree::Kind::kLink) {
      if (++links > kMaxLinks) continue;
      node = tree_.follow(tree_.path_of(node->ino));
      if (!node || !may_reach(*node)) continue;
    }
    const size_t below = frame.component + 1;
    if (below == components_.size()) {
      if (node->file && may(*node, 4)) return Found{std::move(path), node->file};
    } else if (node->kind == Tree::Kind::kDirectory) {
      enter(*node, std::move(path), below, links);
    }
  }
  return std::nullopt;
}

Result<std::vector<std::string>> matching_files(Tree& tree, std::string_view pattern,
                                                WalkBudget& budget) {
  std::vector<std::string> paths;
  FileWalk walk(tree, {std::string(pattern)});
  if (!is_pattern(pattern)) {
    paths.emplace_back(pattern);
  } else {
    while (std::optional<FileWalk::Found> found = walk.next(budget.entries)) {
      if (paths.size() == budget.files) break;
      paths.push_back(std::move(found->path));
    }
    if (!walk.ended()) return errorf(E2BIG, "{}: stands for too many paths", pattern);
  }
  budget.files -= std::min(budget.files, paths.size());
  return paths;
}

}  // namespace rocefs
