#include "tools/rocefs/sim/view_recording.h"

#include <fmt/ranges.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/picture/recording.h"
#include "tools/picture/shape.h"
#include "tools/rocefs/instance/instance.h"

namespace rocefs {
namespace {

Caller reader() {
  return {::geteuid(), ::getegid(), ::getpid()};
}

// Leaves out who has started a flow, in texts as `get` shows them: this process, whose pid and name
// are not the same in each run.
void erase_process(std::string& text) {
  const std::string line = fmt::format("\\npid {}\\n", ::getpid());
  for (size_t at = 0; (at = text.find(line, at)) != text.npos;) {
    text.erase(at, std::min(text.find('\n', at), text.size()) - at);
  }
}

}  // namespace

ViewRecording::ViewRecording(std::string name, Tree& tree, Wait wait)
    : name_(std::move(name)),
      tree_(tree),
      wait_(std::move(wait)),
      file_(name_, std::ios::binary | std::ios::trunc) {}

Result<std::unique_ptr<ViewRecording>> ViewRecording::begin(const std::string& file,
                                                            const std::string& title, Tree& tree,
                                                            Wait wait) {
  errno = 0;
  std::unique_ptr<ViewRecording> recording(new ViewRecording(file, tree, std::move(wait)));
  if (!recording->file_) return recording->file_error();
  if (Result<void> started = recording->start(title); !started) {
    recording->give_up();
    return started.error();
  }
  return recording;
}

Result<void> ViewRecording::start(const std::string& title) {
  Result<std::string> shape = this->shape(title);
  if (!shape) return shape.error();
  const std::vector<std::string>* const kPatterns[] = {&kFabricFiles, &kFlowFiles};
  for (size_t i = 0; i < std::size(groups_); ++i) {
    Result<std::unique_ptr<OpenFile>> opened = query(*kPatterns[i]);
    if (!opened) return opened.error();
    groups_[i].file = std::move(*opened);
  }
  return write(recording_head(*shape));
}

Result<std::unique_ptr<OpenFile>> ViewRecording::query(const std::vector<std::string>& patterns) {
  const std::shared_ptr<File>& get = tree_.follow(fmt::format("{}/get", kDebugDirectory))->file;
  Result<std::unique_ptr<OpenFile>> opened = get->open(get, reader());
  if (!opened) return opened.error();
  const std::string text = fmt::format("{}", fmt::join(patterns, " "));
  Result<void> asked = wait_([&](Answer<void> told) {
    (*opened)->write(text, std::make_shared<Operation>(reader()),
                     [told = std::move(told)](Result<size_t> taken) mutable {
                       told(taken ? Result<void>() : Result<void>(taken.error()));
                     });
  });
  if (!asked) return errorf(asked.error().code, "{}: {}", name_, asked.error().reason);
  return opened;
}

Result<void> ViewRecording::look_at(Group& group) {
  constexpr size_t kPart = 128 << 10;
  std::string& text = group.looks.begin();
  for (bool more = true; more;) {
    Result<void> read = wait_([&](Answer<void> told) {
      group.file->read(0, kPart, std::make_shared<Operation>(reader()),
                       [&, told = std::move(told)](Result<std::string> part) mutable {
                         if (!part) return told(part.error());
                         more = !part->empty();
                         text += *part;
                         told({});
                       });
    });
    if (!read) return errorf(read.error().code, "{}: {}", name_, read.error().reason);
  }
  erase_process(text);
  group.looks.take();
  return {};
}

// Names in the order of their numbers, as those of a mount.
std::vector<std::string> ViewRecording::names_in(const std::string& directory) {
  std::vector<std::string> names;
  Tree::Node* node = tree_.follow(directory);
  if (!node) return names;
  const std::vector<Ino> entries = tree_.entries(node->ino);
  for (Ino entry : entries) names.push_back(tree_.find(entry)->name);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;
  });
  return names;
}

Result<std::string> ViewRecording::shape(const std::string& title) {
  NetworkNames names{names_in(fmt::format("{}/fabric", kDebugDirectory)),
                     names_in("class/infiniband"),
                     names_in(fmt::format("{}/links", kDebugDirectory))};
  Group ports;
  Result<std::unique_ptr<OpenFile>> opened = query({std::string(kSwitchPorts)});
  if (!opened) return opened.error();
  ports.file = std::move(*opened);
  if (Result<void> looked = look_at(ports); !looked) return looked.error();
  return shape_json(shape_of(std::move(names), ports.looks.lines()), title, false);
}

void ViewRecording::look(TimeNs now) {
  if (!written_) return;
  const bool passed = now != std::exchange(last_look_, now);
  if (passed || !log_.empty() || !stores_.empty()) written_ = write_look();
  if (!written_) give_up();
}

Result<void> ViewRecording::write_look() {
  MessageContent content;
  for (size_t i = 0; i < std::size(groups_); ++i) {
    Group& group = groups_[i];
    if (Result<void> looked = look_at(group); !looked) return looked;
    append_json(content.groups, group.looks.other_files() ? whole_group(i, group.looks)
                                                          : changes_of_group(i, group.looks));
  }
  content.dmesg = std::exchange(log_, {});
  content.stores = std::exchange(stores_, {});
  return write(content.message({}, {}));
}

Error ViewRecording::file_error() const {
  const int code = errno ? errno : EIO;
  return errorf(code, "{}: {}", name_, std::strerror(code));
}

Result<void> ViewRecording::write(const std::string& line) {
  errno = 0;
  if (file_ << line << '\n') return {};
  return file_error();
}

Result<void> ViewRecording::finish() {
  if (!written_) return written_;
  errno = 0;
  file_.close();
  if (file_) return {};
  const Error error = file_error();
  give_up();
  return error;
}

// On a full disk the results need the room.
void ViewRecording::give_up() {
  file_.close();
  ::unlink(name_.c_str());
}

}  // namespace rocefs
