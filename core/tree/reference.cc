#include "core/tree/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/text.h"
#include "core/tree/function_file.h"

namespace rocefs {
namespace {

using Parts = std::vector<std::string>;

struct Line {
  Parts path;
  std::string mode;
  FileDoc doc;
};

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Devices lie below devices/; users know them by the links in class/.
std::map<std::string, std::string> class_links(Tree& tree) {
  std::map<std::string, std::string> links;
  Tree::Node* classes = tree.resolve("class");
  if (!classes) return links;
  tree.fill_all();
  for (Ino kind : classes->children) {
    for (Ino child : tree.find(kind)->children) {
      if (tree.find(child)->kind != Tree::Kind::kLink) continue;
      std::string link = tree.path_of(child);
      if (Tree::Node* target = tree.follow(link)) links[tree.path_of(target->ino)] = link;
    }
  }
  return links;
}

std::string known_as(const std::map<std::string, std::string>& links, const std::string& path) {
  for (const auto& [target, link] : links) {
    if (path.starts_with(target + "/")) return link + path.substr(target.size());
  }
  return path;
}

// Files with the same words, name and depth share one line; names that are numbers count as equal.
std::vector<Line> lines_of(Tree& tree) {
  std::map<std::string, std::string> links = class_links(tree);
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, size_t>;
  std::map<Key, Line> merged;
  tree.each_file([&](const std::string& path, const std::shared_ptr<File>& file) {
    std::string shown = known_as(links, path);
    Parts parts;
    for (std::string_view part : split(shown, "/")) parts.emplace_back(part);
    FileDoc doc = file->doc();
    std::string name = is_number(parts.back()) ? "" : parts.back();
    std::string mode = std::string(file->readable() ? "r" : "") + (file->writable() ? "w" : "");
    Key key{name,
            doc.kind.data() ? std::string(doc.kind) : "",
            doc.values,
            doc.initial,
            std::string(doc.text),
            parts.size()};
    auto [it, added] = merged.try_emplace(key, Line{parts, mode, doc});
    if (added) return;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (it->second.path[i] != parts[i]) it->second.path[i] = "*";
    }
  });
  std::vector<Line> lines;
  for (auto& [key, line] : merged) lines.push_back(std::move(line));
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    auto directory = [](const Line& line) { return Parts(line.path.begin(), line.path.end() - 1); };
    return std::tuple(directory(a), a.path.back()) < std::tuple(directory(b), b.path.back());
  });
  return lines;
}

// Escapes `|`, which ends a cell of a table.
std::string cell(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string reference_of(Tree& tree) {
  std::string text =
      "# The files of the tree\n\n"
      "Made by `make reference` from the texts of the files; `*` stands for names that differ:\n"
      "devices, interfaces, links, flows, table entries.\n";
  std::string section;
  for (const Line& line : lines_of(tree)) {
    Parts directory(line.path.begin(), line.path.end() - 1);
    std::string here = fmt::format("{}", fmt::join(directory, "/"));
    if (here != section) {
      section = here;
      text += fmt::format(
          "\n## {}\n\n| file | | kind | values | initial | description |\n"
          "|---|---|---|---|---|---|\n",
          here);
    }
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", line.path.back(), line.mode,
                        line.doc.kind, cell(line.doc.values), cell(line.doc.initial),
                        cell(line.doc.text));
  }
  return text;
}

void add_reference_file(Tree& tree, const std::string& directory) {
  tree.add_file(directory + "/reference",
                std::make_shared<FunctionStream>([&tree] { return reference_of(tree); },
                                                 "reference of this mount's files"));
}

}  // namespace rocefs
