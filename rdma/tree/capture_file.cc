#include "rdma/tree/capture_file.h"

#include <cerrno>
#include <cstring>

#include "core/base/kstrto.h"
#include "core/tree/trigger.h"

namespace rocefs {

namespace {

bool names_file(std::string_view text) {
  return without_newline(text) != "off";
}

constexpr TriggerRow kPcap{
    "pcap", "PATH or off",
    "starts a capture of packets transmitted by NIC ports, or ends it; pcapng if PATH ends so, "
    "else pcap. PATH has a slash or a dot. Shows the path and the number of packets",
    true, names_file};

}  // namespace

void CaptureFile::add_file(Tree& tree, const std::string& directory) {
  auto self = shared_from_this();
  add_trigger(
      tree, directory, kPcap, engine_,
      [self](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
        self->store(text, operation, std::move(answer));
      },
      [self]() -> Result<std::string> { return self->show(); });
}

std::string CaptureFile::show() const {
  if (path_.empty()) return "off";
  return fmt::format("{} {}", path_, capture_ ? capture_->packets() : 0);
}

void CaptureFile::store(std::string_view text, const OperationPtr& operation, Answer<void> answer) {
  text = without_newline(text);
  if (changing_) return answer(Error{EBUSY, "another change of the capture is in progress"});
  if (text == "off") return stop(std::move(answer));
  // A bare word such as 0 or stop is not meant as a file.
  if (text.find_first_of("/.") == text.npos) {
    return answer(
        errorf(EINVAL, "{}: a path, with a slash or a dot, or off is wanted", quoted(text)));
  }
  if (!path_.empty()) {
    return answer(errorf(EBUSY, "capturing to {} already: off ends that", path_));
  }
  start(std::string(text), operation, std::move(answer));
}

void CaptureFile::start(const std::string& path, const OperationPtr& operation,
                        Answer<void> answer) {
  const Result<IdentityPtr>& who = operation->identity();
  if (!who) return answer(who.error());
  changing_ = opening_ = true;
  auto self = shared_from_this();
  operation->on_interrupt([self] {
    if (self->opening_ && self->file_) self->file_->give_up(Error{EINTR, "interrupted"});
  });
  file_ = files_.open(*who, path, FileUse::kReplace,
                      [self, answer = std::move(answer)](Result<void> opened) mutable {
                        self->opening_ = false;
                        if (opened) return self->begin(std::move(answer));
                        self->changing_ = false;
                        self->file_.reset();
                        answer(std::move(opened));
                      });
}

void CaptureFile::begin(Answer<void> answer) {
  auto self = shared_from_this();
  const std::string& path = file_->path();
  CaptureFormat format = path.ends_with(".pcapng") ? CaptureFormat::kPcapng : CaptureFormat::kPcap;
  broken_ = false;
  auto hand_over = [this](const PcapCapture::Piece& piece) {
    engine_.tell_control([this, piece] { write(piece); });
  };
  PcapCapture::Slots slots{file_->memory(), file_->slot(0), CallerFile::kSlot, CallerFile::kSlots};
  capture_ = std::make_shared<PcapCapture>(engine_, fabric_, std::move(slots), format, hand_over);
  engine_.call<void>(
      [capture = capture_]() -> Result<void> {
        capture->start();
        return {};
      },
      [self, answer = std::move(answer)](Result<void> result) mutable {
        self->changing_ = false;
        if (result) {
          self->path_ = self->file_->path();
        } else {
          self->capture_.reset();
          self->file_.reset();
        }
        answer(std::move(result));
        if (self->broken_ && !self->path_.empty()) self->stop([](Result<void>) {});
      });
}

void CaptureFile::write(const PcapCapture::Piece& piece) {
  auto written = [this, capture = capture_, slot = piece.slot](Result<uint64_t> put) {
    if (put && *put == 0) put = errorf(EIO, "{}", std::strerror(EIO));
    if (!put) broken(put.error());
    engine_.post_retrying([capture, slot, size = put ? *put : 0] { capture->written(slot, size); });
  };
  file_->write(piece.slot, piece.offset, piece.skip, piece.size, std::move(written));
}

void CaptureFile::broken(const Error& why) {
  if (std::exchange(broken_, true)) return;
  failed_(fmt::format("capture ended: {}", why.reason));
  if (!changing_) stop([](Result<void>) {});  // else after the change in progress
}

void CaptureFile::stop(Answer<void> answer) {
  if (path_.empty()) return answer({});
  stopping_.push_back(std::move(answer));
  if (stopping_.size() > 1) return;  // a reset together with `off`
  changing_ = true;
  auto closed = [self = shared_from_this()] {
    self->engine_.tell_control([self] { self->close(); });
  };
  Task end = [capture = capture_, closed] { capture->stop(closed); };
  if (engine_.post(end)) return;
  changing_ = false;
  stopped(Error{EAGAIN, "too many commands are waiting for the engine"});
}

// All packets are handed over; write errors may appear only at close.
void CaptureFile::close() {
  auto ended = [self = shared_from_this(), file = file_](Result<uint64_t> closed) {
    if (!closed && !self->broken_) {
      self->failed_(fmt::format("capture ended: {}", closed.error().reason));
    }
    self->changing_ = false;
    self->path_.clear();
    self->capture_.reset();
    self->stopped({});
  };
  CallerFilePtr file = std::exchange(file_, nullptr);
  if (!file) return ended(uint64_t{0});
  file->close(std::move(ended));
}

void CaptureFile::stopped(const Result<void>& result) {
  for (Answer<void>& answer : std::exchange(stopping_, {})) answer(result);
}

}  // namespace rocefs
