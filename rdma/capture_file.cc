#include "rdma/capture_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "core/caller_file.h"
#include "core/trigger.h"

namespace rocefs {

namespace {

constexpr TriggerRow kPcap{"pcap", "PATH or off",
                           "starts a capture of what NIC ports transmit, or ends it, as pcapng "
                           "where PATH ends so, else as pcap; shows the path and how many "
                           "packets it holds"};

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
  if (changing_) return answer(Error{EBUSY, "another change of the capture is under way"});
  if (text == "off") return stop(std::move(answer));
  if (text.empty()) return answer(Error{EINVAL, "a path, or off, is wanted"});
  if (!path_.empty()) return answer(errorf(EBUSY, "capturing to {} already", path_));
  start(std::string(text), operation->caller(), std::move(answer));
}

void CaptureFile::start(std::string path, const Caller& caller, Answer<void> answer) {
  changing_ = true;
  auto self = shared_from_this();
  worker_.post([self, path, caller, mount = own_mount_, answer = std::move(answer)]() mutable {
    Result<Fd> file = open_as(caller, path, O_WRONLY | O_CREAT | O_TRUNC, mount);
    self->engine_.tell_control(
        [self, path, file = std::move(file), answer = std::move(answer)]() mutable {
          if (file) return self->begin(path, std::move(*file), std::move(answer));
          self->changing_ = false;
          answer(file.error());
        });
  });
}

void CaptureFile::begin(const std::string& path, Fd file, Answer<void> answer) {
  auto self = shared_from_this();
  auto broken = [self, path](int code) {
    self->engine_.tell_control([self, path, code] { self->broken(path, code); });
  };
  CaptureFormat format = path.ends_with(".pcapng") ? CaptureFormat::kPcapng : CaptureFormat::kPcap;
  capture_ = std::make_shared<PcapCapture>(engine_, fabric_, std::move(file), format, broken);
  engine_.call<void>(
      [capture = capture_]() -> Result<void> {
        capture->start();
        return {};
      },
      [self, path, answer = std::move(answer)](Result<void> result) mutable {
        self->changing_ = false;
        if (result) {
          self->path_ = path;
        } else {
          self->capture_.reset();
        }
        answer(std::move(result));
        bool ended = std::exchange(self->broken_, false);
        if (ended && self->capture_) self->stop([](Result<void>) {});
      });
}

void CaptureFile::broken(const std::string& path, int code) {
  failed_(fmt::format("capture to {} ended: {}", path, std::strerror(code)));
  if (changing_) {
    broken_ = true;  // the change under way comes first
  } else if (path_ == path) {
    stop([](Result<void>) {});
  }
}

void CaptureFile::stop(Answer<void> answer) {
  if (path_.empty()) return answer({});
  changing_ = true;
  auto self = shared_from_this();
  auto kept = std::make_shared<Answer<void>>(std::move(answer));
  auto closed = [self, kept] {
    self->engine_.tell_control([self, kept] {
      self->changing_ = self->broken_ = false;
      self->path_.clear();
      self->capture_.reset();
      (*kept)({});
    });
  };
  Task end = [capture = capture_, closed] { capture->stop(closed); };
  if (engine_.post(end)) return;
  changing_ = false;
  (*kept)(Error{EAGAIN, "too many commands are waiting for the engine"});
}

}  // namespace rocefs
