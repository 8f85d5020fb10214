#include "core/tree/get_file.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/tree/file_walk.h"
#include "core/tree/open_text.h"

namespace rocefs {
namespace {

// Entries that the control thread looks at, and octets that it gives, before it turns to its other
// work: about a millisecond.
constexpr size_t kEntriesATurn = 2'000;
constexpr size_t kBytesATurn = 128 << 10;

void append_line(std::string& lines, std::string_view path, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  lines += path;
  lines += '=';
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of("\\\n"), text.size());
    lines += text.substr(0, plain);
    if (plain == text.size()) break;
    lines += text[plain] == '\n' ? "\\n" : "\\\\";
    text.remove_prefix(plain + 1);
  }
  lines += '\n';
}

// The text that a read of the file would give, if that is known at once, or else what it said last.
Result<std::string> known_text(Attribute& file) {
  auto present = std::make_shared<std::optional<Result<std::string>>>();
  file.show_present([present](Result<std::string> text) { *present = std::move(text); });
  return *present ? std::move(**present) : file.show();
}

Attribute* text_file(File& file) {
  return file.readable() && !file.device() ? dynamic_cast<Attribute*>(&file) : nullptr;
}

// The files that a query names. Finding them costs much more than asking for their texts: they are
// kept from one pass to the next, as long as the tree does not change and the user's share lasts.
class Query {
 public:
  Query(Tree& tree, std::vector<std::string> patterns, const Caller& reader)
      : tree_(tree), walk_(tree, std::move(patterns), reader), user_(reader.uid) {
    restart();
  }

  void restart() {
    if (!known_ || version_ != tree_.version()) forget();
    at_ = 0;
    walk_.restart();
    version_ = tree_.version();
  }
  // The next file; null if there is none, or as FileWalk::next().
  const FileWalk::Found* next(size_t& budget) {
    if (known_) return at_ < files_.size() ? &files_[at_++] : nullptr;
    std::optional<FileWalk::Found> found = walk_.next(budget);
    if (!found) {
      known_ = walk_.ended() && keeps_ && walk_.repeats() && version_ == tree_.version();
      at_ = files_.size();
      return nullptr;
    }
    if (keeps_ && files_.size() % kFilesAShare == 0) {
      shares_.push_back(take_open_text(user_, kFilesAShare * kBytesAFile));
      if (!shares_.back()) {
        forget();
        keeps_ = false;
      }
    }
    if (!keeps_) files_.clear();
    return &files_.emplace_back(std::move(*found));
  }
  bool ended() const { return known_ ? at_ == files_.size() : walk_.ended(); }

 private:
  static constexpr size_t kFilesAShare = 1024, kBytesAFile = 192;
  void forget() {
    known_ = false;
    keeps_ = true;
    files_.clear();
    shares_.clear();
  }

  Tree& tree_;
  FileWalk walk_;
  const uid_t user_;
  std::vector<FileWalk::Found> files_;  // of this pass so far, or all of them
  bool known_ = false;                  // files_ are all
  bool keeps_ = true;
  size_t at_ = 0;
  uint64_t version_ = 0;  // of the tree when the pass began
  std::vector<Shares::Share> shares_;
};

// A read in progress keeps the state of its open file alive.
class OpenGet final : public OpenFile {
 public:
  OpenGet(Tree& tree, PollLoop& loop, const Caller& caller)
      : state_(std::make_shared<State>(State{tree, loop, caller, {}, {}})) {}

  void write(std::string_view data, const OperationPtr&, Answer<size_t> answer) override {
    if (data.size() >= File::kPageSize) {
      return answer(errorf(EINVAL, "longer than {} bytes", File::kPageSize - 1));
    }
    std::vector<std::string> patterns;
    for (std::string_view pattern : split(data, " \t\n")) patterns.emplace_back(pattern);
    if (patterns.empty()) return answer(Error{EINVAL, "PATH [PATH …] is wanted"});
    for (const std::string& pattern : patterns) {
      if (Result<void> checked = check(pattern); !checked) return answer(checked.error());
    }
    state_->query.emplace(state_->tree, std::move(patterns), state_->caller);
    state_->text.clear();
    state_->over = false;
    answer(data.size());
  }

  void read(uint64_t, size_t size, const OperationPtr&, Answer<std::string> answer) override {
    if (!state_->query) {
      return answer(Error{EINVAL, "write PATH [PATH …] first, on this descriptor"});
    }
    if (state_->reading) return answer(Error{EBUSY, "another read is in progress"});
    state_->reading = true;
    if (std::exchange(state_->over, false)) state_->query->restart();
    go_on(state_, std::min(size, kBytesATurn), std::move(answer));
  }

  short poll(Task) override { return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM; }

 private:
  struct State {
    Tree& tree;
    PollLoop& loop;
    const Caller caller;
    std::optional<Query> query;
    std::string text;  // not yet read
    bool reading = false;
    bool over = false;  // the end of the file was read
  };

  // A path without * and ? must be that of a file whose text can be shown.
  Result<void> check(const std::string& path) const {
    if (is_pattern(path)) return {};
    Tree::Node* node = state_->tree.follow(path);
    if (!node) return errorf(ENOENT, "{}: no such file", path);
    if (!node->file) return errorf(EISDIR, "{}: not a file", path);
    if (!node->file->readable()) return errorf(EACCES, "{}: not readable", path);
    if (!text_file(*node->file)) {
      return errorf(EINVAL, "{}: its text may be longer than a page: read the file itself", path);
    }
    FileWalk walk(state_->tree, {path}, state_->caller);
    size_t budget = SIZE_MAX;
    if (!walk.next(budget)) return errorf(EACCES, "{}: not readable for this user", path);
    return {};
  }

  static void go_on(const std::shared_ptr<State>& state, size_t size, Answer<std::string> answer) {
    size_t budget = kEntriesATurn;
    while (state->text.size() < size) {
      const FileWalk::Found* found = state->query->next(budget);
      if (!found) break;
      Attribute* file = text_file(*found->file);
      if (!file || file->removed()) continue;
      if (Result<std::string> text = known_text(*file)) {
        append_line(state->text, found->path, *text);
      }
    }
    if (state->text.empty() && !state->query->ended()) {
      state->loop.post([state, size, answer = std::move(answer)]() mutable {
        go_on(state, size, std::move(answer));
      });
      return;
    }
    state->reading = false;
    state->over = state->text.empty();
    std::string part = state->text.substr(0, size);
    state->text.erase(0, part.size());
    answer(std::move(part));
  }

  const std::shared_ptr<State> state_;
};

class GetFile final : public File {
 public:
  GetFile(Tree& tree, PollLoop& loop) : tree_(tree), loop_(loop) {}
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool device() const override { return true; }
  mode_t mode() const override { return 0666; }
  uint64_t size() const override { return kPageSize; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>&,
                                         const Caller& caller) override {
    return {std::make_unique<OpenGet>(tree_, loop_, caller)};
  }
  FileDoc doc() const override {
    return {"trigger",
            "PATH [PATH …]",
            {},
            "a write names files, * and ? in a PATH standing for several; reads of the same "
            "descriptor then give a line PATH=TEXT for each, up to the end of the file, and from "
            "the first one again after it. \\n in a TEXT is a newline, \\\\ a backslash"};
  }

 private:
  Tree& tree_;
  PollLoop& loop_;
};

}  // namespace

void add_get_file(Tree& tree, const std::string& directory, PollLoop& loop) {
  tree.add_file(directory + "/get", std::make_shared<GetFile>(tree, loop));
}

}  // namespace rocefs
