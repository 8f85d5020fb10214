#include "core/tree/glob.h"

#include <fnmatch.h>

#include "core/base/text.h"

namespace rocefs {

bool is_pattern(std::string_view path) {
  return path.find_first_of("*?") != path.npos;
}

namespace {

std::string joined_path(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

// Paths below `directories` whose next component matches.
std::vector<std::string> matching_entries(Tree& tree, const std::vector<std::string>& directories,
                                          std::string_view component) {
  const std::string pattern(component);
  std::vector<std::string> paths;
  for (const std::string& directory : directories) {
    if (!is_pattern(component)) {
      paths.push_back(joined_path(directory, component));
      continue;
    }
    Tree::Node* node = tree.follow(directory);
    if (!node || node->kind != Tree::Kind::kDirectory) continue;
    for (Ino entry : tree.entries(node->ino)) {
      const std::string& name = tree.find(entry)->name;
      if (::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) != 0) continue;
      paths.push_back(joined_path(directory, name));
    }
  }
  return paths;
}

}  // namespace

std::vector<std::string> matching_files(Tree& tree, std::string_view pattern) {
  if (!is_pattern(pattern)) return {std::string(pattern)};
  std::vector<std::string> paths{""};
  for (std::string_view component : split(pattern, "/")) {
    paths = matching_entries(tree, paths, component);
  }
  std::erase_if(paths, [&](const std::string& path) {
    Tree::Node* node = tree.follow(path);
    return !node || !node->file;
  });
  return paths;
}

}  // namespace rocefs
