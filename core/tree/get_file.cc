#include "core/tree/get_file.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/shares.h"
#include "core/base/text.h"
#include "core/tree/file_walk.h"

namespace rocefs {
namespace {

// Time of the control thread for readers of `get`, of all of them, until it turns to its other
// work; a look at the clock follows so many entries.
constexpr TimeNs kTurn = 500'000;
constexpr size_t kEntriesALook = 64;
// Octets that a read(2) gives at most.
constexpr size_t kBytesARead = 128 << 10;

// Limits what the queries of all open files hold. Each has its share of what a walk and a text
// need; the files that it keeps count by their size.
constexpr size_t kBytesAQuery = 256 << 10;
Shares::Share take_query_memory(uid_t user, size_t bytes) {
  static Shares shares(size_t{256} << 20, size_t{32} << 20);
  return shares.take(user, is_privileged(user), bytes);
}

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
  Query(Tree& tree, std::vector<std::string> patterns, const TreeUser& reader, Shares::Share memory)
      : tree_(tree),
        walk_(tree, std::move(patterns), reader),
        user_(reader.uid),
        shares_{std::move(memory)} {
    restart();
  }

  void restart() {
    if (!known_ || version_ != tree_.version()) forget();
    at_ = 0;
    walk_.restart();
    version_ = tree_.version();
  }
  // The next file; null as of FileWalk::next(), or where a kept file has gone.
  std::optional<FileWalk::Found> next(size_t& budget) {
    if (known_) return next_known(budget);
    std::optional<FileWalk::Found> found = walk_.next(budget);
    if (found && keeps_) {
      keep(*found);
    } else if (walk_.ended() && keeps_ && walk_.repeats() && version_ == tree_.version()) {
      known_ = true;
      at_ = files_.size();
    }
    return found;
  }
  bool ended() const { return known_ ? at_ == files_.size() : walk_.ended(); }
  bool too_long() const { return walk_.too_long(); }

 private:
  // Kept files belong to the tree alone: a device that leaves takes them with it.
  struct Kept {
    std::string path;
    std::weak_ptr<File> file;
  };
  static constexpr size_t kBytesAShare = 64 << 10;

  std::optional<FileWalk::Found> next_known(size_t& budget) {
    for (; budget > 0 && at_ < files_.size(); --budget) {
      const Kept& kept = files_[at_++];
      if (std::shared_ptr<File> file = kept.file.lock()) {
        return FileWalk::Found{kept.path, std::move(file)};
      }
    }
    return std::nullopt;
  }
  void keep(const FileWalk::Found& found) {
    const size_t bytes = sizeof(Kept) * 2 + found.path.size() + 1;  // a vector grows by doubling
    if (bytes > unused_) {
      shares_.push_back(take_query_memory(user_, kBytesAShare));
      unused_ = shares_.back() ? kBytesAShare : 0;
      if (bytes > unused_) {
        forget();
        keeps_ = false;
        return;
      }
    }
    unused_ -= bytes;
    files_.push_back({found.path, found.file});
  }
  void forget() {
    known_ = false;
    keeps_ = true;
    std::vector<Kept>().swap(files_);
    shares_.resize(1);
    unused_ = 0;
  }

  Tree& tree_;
  FileWalk walk_;
  const uid_t user_;
  std::vector<Kept> files_;  // of this pass so far, or all of them
  bool known_ = false;       // files_ are all
  bool keeps_ = true;
  size_t at_ = 0;
  uint64_t version_ = 0;  // of the tree when the pass began
  std::vector<Shares::Share> shares_;
  size_t unused_ = 0;  // octets of the last share
};

// A read(2) in progress. Kept by the turns while it waits.
struct GetRead {
  Query* query;  // null: given up
  std::string* text;
  size_t size;
  Answer<std::string> answer;
};

// Readers take turns, one for each task of the loop: the control thread's other work waits for one
// turn, however many readers there are.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  explicit Turns(PollLoop& loop) : loop_(loop) {}
  void add(std::shared_ptr<GetRead> read) {
    waiting_.push_back(std::move(read));
    post();
  }

 private:
  // The task may run when the file is gone.
  void post() {
    if (std::exchange(posted_, true)) return;
    loop_.post([self = weak_from_this()] {
      if (auto turns = self.lock()) turns->run();
    });
  }
  void run();

  PollLoop& loop_;
  std::deque<std::shared_ptr<GetRead>> waiting_;
  bool posted_ = false;  // a turn will come
};

// Collects text for a turn. Whether the read has its answer.
bool collect(GetRead& read) {
  if (!read.query) return true;
  const TimeNs end = monotonic_ns() + kTurn;
  std::string& text = *read.text;
  bool more = true;
  while (more && text.size() < read.size) {
    size_t budget = kEntriesALook;
    while (text.size() < read.size) {
      std::optional<FileWalk::Found> found = read.query->next(budget);
      if (!found) break;
      Attribute* file = text_file(*found->file);
      if (!file || file->removed()) continue;
      if (Result<std::string> value = known_text(*file)) append_line(text, found->path, *value);
    }
    more = !read.query->ended() && monotonic_ns() < end;
  }
  if (read.query->too_long()) {
    read.answer(Error{E2BIG, "the patterns stand for too many paths"});
    return true;
  }
  if (text.empty() && !read.query->ended()) return false;
  if (text.size() <= read.size) {
    read.answer(std::exchange(text, {}));
  } else {
    std::string part = text.substr(0, read.size);
    text.erase(0, read.size);
    read.answer(std::move(part));
  }
  return true;
}

void Turns::run() {
  posted_ = false;
  const std::shared_ptr<GetRead> read = std::move(waiting_.front());
  waiting_.pop_front();
  if (!collect(*read)) waiting_.push_back(read);
  if (!waiting_.empty()) post();
}

class OpenGet final : public OpenFile {
 public:
  OpenGet(Tree& tree, std::shared_ptr<Turns> turns, const Caller& caller)
      : tree_(tree), turns_(std::move(turns)), caller_(caller) {}
  ~OpenGet() override { give_up(); }

  void write(std::string_view data, const OperationPtr& operation, Answer<size_t> answer) override {
    if (data.size() >= File::kPageSize) {
      return answer(errorf(EINVAL, "longer than {} bytes", File::kPageSize - 1));
    }
    std::vector<std::string> patterns;
    for (std::string_view pattern : split(data, " \t\n")) patterns.emplace_back(pattern);
    if (patterns.empty()) return answer(Error{EINVAL, "PATH [PATH …] is wanted"});
    const TreeUser reader = reader_of(caller_, operation);
    for (const std::string& pattern : patterns) {
      if (Result<void> checked = check(pattern, reader); !checked) return answer(checked.error());
    }
    Shares::Share memory = take_query_memory(caller_.uid, kBytesAQuery);
    if (!memory) return answer(Error{ENOMEM, "the user has too many open queries"});
    give_up();
    query_.emplace(tree_, std::move(patterns), reader, std::move(memory));
    text_.clear();
    over_ = false;
    answer(data.size());
  }

  void read(uint64_t, size_t size, const OperationPtr& operation,
            Answer<std::string> answer) override {
    if (!query_) return answer(Error{EINVAL, "write PATH [PATH …] first, on this descriptor"});
    if (reading_) return answer(Error{EBUSY, "another read is in progress"});
    if (std::exchange(over_, false)) query_->restart();
    reading_ = std::make_shared<GetRead>();
    *reading_ = {&*query_, &text_, std::min(size, kBytesARead),
                 [this, answer = std::move(answer)](Result<std::string> part) mutable {
                   reading_.reset();
                   over_ = !part || part->empty();
                   answer(std::move(part));
                 }};
    const std::shared_ptr<GetRead> read = reading_;
    if (collect(*read)) return;
    operation->on_interrupt([reading = std::weak_ptr<GetRead>(read)] {
      if (auto given_up = reading.lock(); given_up && given_up->query) {
        given_up->query = nullptr;
        given_up->answer(Error{EINTR, "interrupted"});
      }
    });
    turns_->add(read);
  }

  short poll(Task) override { return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM; }

 private:
  // A path without * and ? must be that of a file whose text can be shown.
  Result<void> check(const std::string& path, const TreeUser& reader) const {
    if (Result<void> checked = FileWalk::check(path); !checked) return checked;
    if (is_pattern(path)) return {};
    Tree::Node* node = tree_.follow(path);
    if (!node) return errorf(ENOENT, "{}: no such file", path);
    if (!node->file) return errorf(EISDIR, "{}: not a file", path);
    if (!node->file->readable()) return errorf(EACCES, "{}: not readable", path);
    if (!text_file(*node->file)) {
      return errorf(EINVAL, "{}: its text may be longer than a page: read the file itself", path);
    }
    FileWalk walk(tree_, {path}, reader);
    size_t budget = SIZE_MAX;
    if (!walk.next(budget)) return errorf(EACCES, "{}: not readable for this user", path);
    return {};
  }

  // The caller has gone, or has asked for something else.
  void give_up() {
    if (!reading_) return;
    const std::shared_ptr<GetRead> read = std::move(reading_);
    read->query = nullptr;
    read->answer(Error{ECANCELED, "another query"});
  }

  Tree& tree_;
  const std::shared_ptr<Turns> turns_;
  const Caller caller_;
  std::optional<Query> query_;
  std::string text_;   // not yet read
  bool over_ = false;  // the end of the file was read
  std::shared_ptr<GetRead> reading_;
};

class GetFile final : public File {
 public:
  GetFile(Tree& tree, PollLoop& loop) : tree_(tree), turns_(std::make_shared<Turns>(loop)) {}
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool device() const override { return true; }
  bool keeps_opener() const override { return true; }
  mode_t mode() const override { return 0666; }
  uint64_t size() const override { return kPageSize; }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>&,
                                         const Caller& caller) override {
    return {std::make_unique<OpenGet>(tree_, turns_, caller)};
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
  const std::shared_ptr<Turns> turns_;
};

}  // namespace

void add_get_file(Tree& tree, const std::string& directory, PollLoop& loop) {
  tree.add_file(directory + "/get", std::make_shared<GetFile>(tree, loop));
}

}  // namespace rocefs
