#include "core/tree/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/text.h"

namespace rocefs {
namespace {

using Parts = std::vector<std::string>;

// Holds the words themselves: the file may go while the reference is made.
struct Line {
  Parts path;
  std::string mode;
  std::string kind, values, initial, text;
};

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Reference in the making. Looks at a few nodes at a time, for a tree of thousands of devices has
// more than a million.
class Making {
 public:
  explicit Making(Tree& tree) : tree_(tree) {
    if (Tree::Node* classes = tree.resolve("class")) {
      for (Ino kind : std::vector(tree.entries(classes->ino))) push_entries(links_left_, kind);
    }
    nodes_left_.push_back(kRootIno);
  }
  // Looks at `nodes` more; whether it has seen all.
  bool go_on(size_t nodes) {
    for (; nodes > 0 && !ended(); --nodes) {
      if (!links_left_.empty()) {
        add_link(take(links_left_));
      } else {
        add(take(nodes_left_));
      }
    }
    return ended();
  }
  std::vector<Line> lines();

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, size_t>;

  static Ino take(std::vector<Ino>& left) {
    const Ino ino = left.back();
    left.pop_back();
    return ino;
  }
  bool ended() const { return links_left_.empty() && nodes_left_.empty(); }
  void push_entries(std::vector<Ino>& left, Ino directory) {
    tree_.fill(directory);
    const std::vector<Ino>& entries = tree_.find(directory)->children;
    left.insert(left.end(), entries.begin(), entries.end());
  }
  void add_link(Ino ino);
  void add(Ino ino);
  void add_file(const std::string& path, const File& file);
  std::string known_as(const std::string& path) const;

  Tree& tree_;
  // Not looked at yet; some may have gone since.
  std::vector<Ino> links_left_, nodes_left_;
  std::unordered_map<std::string, std::string> links_;  // by target
  std::map<Key, Line> merged_;
};

// Devices lie below devices/; users know them by the links in class/.
void Making::add_link(Ino ino) {
  const Tree::Node* node = tree_.find(ino);
  if (!node || node->kind != Tree::Kind::kLink) return;
  const std::string link = tree_.path_of(ino);
  if (const Tree::Node* target = tree_.follow(link)) {
    links_.try_emplace(tree_.path_of(target->ino), link);
  }
}

std::string Making::known_as(const std::string& path) const {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    auto link = links_.find(path.substr(0, slash));
    if (link != links_.end()) return link->second + path.substr(slash);
  }
  return path;
}

void Making::add(Ino ino) {
  const Tree::Node* node = tree_.find(ino);
  if (!node) return;
  if (node->kind == Tree::Kind::kDirectory) return push_entries(nodes_left_, ino);
  if (node->file) add_file(tree_.path_of(ino), *node->file);
}

// Files with the same words, name and depth share one line; names that are numbers count as equal.
void Making::add_file(const std::string& path, const File& file) {
  const std::string shown = known_as(path);
  Parts parts;
  for (std::string_view part : split(shown, "/")) parts.emplace_back(part);
  FileDoc doc = file.doc();
  std::string name = is_number(parts.back()) ? "" : parts.back();
  std::string mode = std::string(file.readable() ? "r" : "") + (file.writable() ? "w" : "");
  Line line{parts, mode, std::string(doc.kind), doc.values, doc.initial, std::string(doc.text)};
  Key key{name, line.kind, line.values, line.initial, line.text, parts.size()};
  auto [it, added] = merged_.try_emplace(std::move(key), std::move(line));
  if (added) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (it->second.path[i] != parts[i]) it->second.path[i] = "*";
  }
}

std::vector<Line> Making::lines() {
  std::vector<Line> lines;
  for (auto& [key, line] : merged_) lines.push_back(std::move(line));
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

std::string text_of(const std::vector<Line>& lines) {
  std::string text =
      "# The files of the tree\n\n"
      "Made by `make reference` from the texts of the files; `*` stands for names that differ:\n"
      "devices, interfaces, links, flows, table entries.\n";
  std::string section;
  for (const Line& line : lines) {
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
                        line.kind, cell(line.values), cell(line.initial), cell(line.text));
  }
  return text;
}

class ReferenceFile final : public Stream, public std::enable_shared_from_this<ReferenceFile> {
 public:
  ReferenceFile(Tree& tree, PollLoop& loop) : tree_(tree), loop_(loop) {}
  // Readers who come while one is made share the next one, which knows all that they know.
  void content(Answer<std::string> answer) override {
    next_.push_back(std::move(answer));
    if (!making_) begin();
  }
  FileDoc doc() const override { return {"value", {}, {}, "reference of this mount's files"}; }

 private:
  // Nodes in a turn, after which the control thread does its other work.
  static constexpr size_t kNodesATurn = 256;

  void begin() {
    served_ = std::exchange(next_, {});
    making_.emplace(tree_);
    post();
  }
  // The task may run when the file is gone.
  void post() {
    loop_.post([self = weak_from_this()] {
      if (auto file = self.lock()) file->run();
    });
  }
  void run() {
    if (!making_->go_on(kNodesATurn)) return post();
    const std::string text = text_of(making_->lines());
    making_.reset();
    for (Answer<std::string>& answer : std::exchange(served_, {})) answer(text);
    if (!next_.empty() && !making_) begin();
  }

  Tree& tree_;
  PollLoop& loop_;
  std::optional<Making> making_;
  std::vector<Answer<std::string>> served_, next_;
};

}  // namespace

void add_reference_file(Tree& tree, const std::string& directory, PollLoop& loop) {
  tree.add_file(directory + "/reference", std::make_shared<ReferenceFile>(tree, loop));
}

}  // namespace rocefs
