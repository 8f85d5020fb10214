#include "core/tree/file.h"

#include <algorithm>
#include <cerrno>

#include "core/tree/open_text.h"

namespace rocefs {
namespace {

Error removed_error() {
  return Error{ENODEV, "the device was removed"};
}

std::string slice(const std::string& text, uint64_t offset, size_t size) {
  if (offset >= text.size()) return {};
  return text.substr(offset, size);
}

// Stores the data of one write(2), as kernfs does.
void write_whole(File& file, std::string_view data, const OperationPtr& operation,
                 Answer<size_t> answer) {
  if (file.removed()) return answer(removed_error());
  if (data.empty()) return answer(size_t{0});
  size_t taken = std::min(data.size(), File::kPageSize);
  std::string_view text = data.substr(0, taken);
  text = text.substr(0, text.find('\0'));
  file.store(text, operation, [taken, answer = std::move(answer)](Result<void> result) mutable {
    if (result) {
      answer(taken);
    } else {
      answer(result.error());
    }
  });
}

}  // namespace

const Result<IdentityPtr>& Operation::identity() {
  if (!identity_ && origin_ == Origin::kSchedule) {
    identity_ = Error{ESRCH, "the writer is unknown to a worker that took over"};
  }
  if (!identity_) identity_ = opener_ ? identity_of(caller_, *opener_) : identity_of(caller_);
  return *identity_;
}

Result<Rights> Operation::rights() {
  if (opener_ && opener_->rights) return *opener_->rights;
  const Result<IdentityPtr>& who = identity();
  if (!who) return who.error();
  return Rights{**who};
}

void OpenFile::ioctl(uint32_t, std::string_view, size_t, const OperationPtr&,
                     Answer<IoctlReply> answer) {
  answer(Error{ENOTTY, "unknown ioctl"});
}

void File::store(std::string_view, const OperationPtr&, Answer<void> answer) {
  answer(Error{EBADF, "not writable"});
}

// The buffer of one open attribute, as seq_file keeps it: filled by show() at offset 0 and whenever
// the offset is not where the last read ended.
class OpenAttribute final : public OpenFile {
 public:
  explicit OpenAttribute(std::shared_ptr<Attribute> attribute) : attribute_(std::move(attribute)) {}
  ~OpenAttribute() override {
    if (wake_) std::erase(attribute_->polled_, this);
  }

  void read(uint64_t offset, size_t size, const OperationPtr&,
            Answer<std::string> answer) override {
    if (attribute_->removed()) return answer(removed_error());
    if (buffer_->filled && offset != 0 && offset == buffer_->position) {
      return answer(buffer_->take(offset, size));
    }
    // The answer may come when the file is closed.
    attribute_->show_present([buffer = buffer_, version = attribute_->version_, offset, size,
                              answer = std::move(answer)](Result<std::string> text) mutable {
      if (!text) return answer(text.error());
      buffer->text = std::move(*text);
      buffer->seen = version;
      buffer->filled = true;
      answer(buffer->take(offset, size));
    });
  }

  void write(std::string_view data, const OperationPtr& operation, Answer<size_t> answer) override {
    write_whole(*attribute_, data, operation, std::move(answer));
  }

  short poll(Task wake) override {
    short events = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
    if (attribute_->removed()) return events | POLLERR | POLLPRI;  // kernfs_fop_poll()
    if (wake) {
      if (!wake_) attribute_->polled_.push_back(this);
      wake_ = std::move(wake);
    }
    if (buffer_->seen != attribute_->version_) events |= POLLERR | POLLPRI;
    return events;
  }

 private:
  friend class Attribute;
  std::shared_ptr<Attribute> attribute_;
  struct Buffer {
    std::string text;
    uint64_t position = 0;
    uint64_t seen = 0;
    bool filled = false;

    std::string take(uint64_t offset, size_t size) {
      std::string part = slice(text, offset, size);
      position = offset + part.size();
      return part;
    }
  };
  Task wake_;
  std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>();
};

Result<std::unique_ptr<OpenFile>> Attribute::open(const std::shared_ptr<File>& self,
                                                  const Caller&) {
  return {std::make_unique<OpenAttribute>(std::static_pointer_cast<Attribute>(self))};
}

void Attribute::notify() {
  ++version_;
  if (changed_) changed_();
  for (OpenAttribute* open : std::exchange(polled_, {})) {
    if (Task wake = std::exchange(open->wake_, nullptr)) wake();
  }
}

void Attribute::mark_removed() {
  File::mark_removed();
  notify();
}

namespace {

class OpenStream final : public OpenFile {
 public:
  OpenStream(std::shared_ptr<Stream> stream, uid_t user)
      : stream_(std::move(stream)), user_(user) {}

  void read(uint64_t offset, size_t size, const OperationPtr&,
            Answer<std::string> answer) override {
    if (stream_->removed()) return answer(removed_error());
    if (snapshot_->share && offset != 0) return answer(slice(snapshot_->text, offset, size));
    // The answer may come when the file is closed.
    stream_->content([snapshot = snapshot_, user = user_, offset, size,
                      answer = std::move(answer)](Result<std::string> content) mutable {
      if (!content) return answer(content.error());
      content->shrink_to_fit();
      Shares::Share share = take_open_text(user, content->size());
      if (!share) return answer(Error{ENOMEM, "the user's open files hold too much text"});
      *snapshot = {std::move(*content), std::move(share)};
      answer(slice(snapshot->text, offset, size));
    });
  }

  void write(std::string_view data, const OperationPtr& operation, Answer<size_t> answer) override {
    write_whole(*stream_, data, operation, std::move(answer));
  }

  short poll(Task) override { return POLLIN | POLLRDNORM; }

 private:
  struct Snapshot {
    std::string text;
    Shares::Share share;  // null: no text
  };
  std::shared_ptr<Stream> stream_;
  const uid_t user_;
  std::shared_ptr<Snapshot> snapshot_ = std::make_shared<Snapshot>();
};

}  // namespace

Result<std::unique_ptr<OpenFile>> Stream::open(const std::shared_ptr<File>& self,
                                               const Caller& caller) {
  return {std::make_unique<OpenStream>(std::static_pointer_cast<Stream>(self), caller.uid)};
}

void Stream::open_size(Answer<uint64_t> answer) {
  content([page = size(), answer = std::move(answer)](Result<std::string> text) mutable {
    answer(text && !text->empty() ? uint64_t{text->size()} : page);
  });
}

}  // namespace rocefs
