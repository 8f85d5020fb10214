#include "mad_cc/umad/issm_file.h"

#include <cerrno>
#include <utility>

namespace rocefs {
namespace {

class OpenIssm;

class IssmFile final : public File {
 public:
  IssmFile(Engine& engine, std::function<void(bool)> set_manager)
      : engine_(engine), set_manager_(std::move(set_manager)) {}
  bool readable() const override { return true; }
  bool writable() const override { return true; }
  bool device() const override { return true; }
  mode_t mode() const override { return 0600; }
  uint64_t size() const override { return 0; }
  FileDoc doc() const override {
    return {"device", {}, {}, "while it is open, a program manages the port's subnet (IsSM)"};
  }
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;
  void mark_removed() override;

 private:
  friend class OpenIssm;
  void tell(bool open) {
    engine_.post_retrying([set = set_manager_, open] { set(open); });
  }
  Engine& engine_;
  const std::function<void(bool)> set_manager_;
  OpenIssm* open_ = nullptr;
};

class OpenIssm final : public OpenFile {
 public:
  explicit OpenIssm(std::shared_ptr<IssmFile> file) : file_(std::move(file)) {
    file_->open_ = this;
    file_->tell(true);
  }
  ~OpenIssm() override { end(); }
  void read(uint64_t, size_t, const OperationPtr&, Answer<std::string> answer) override {
    answer(Error{EINVAL, "issm files have nothing to read"});
  }
  void write(std::string_view, const OperationPtr&, Answer<size_t> answer) override {
    answer(Error{EINVAL, "issm files take nothing"});
  }
  short poll(Task) override { return ended_ ? POLLERR | POLLHUP : POLLIN | POLLOUT; }
  void end() {
    if (std::exchange(ended_, true)) return;
    file_->open_ = nullptr;
    file_->tell(false);
  }

 private:
  const std::shared_ptr<IssmFile> file_;
  bool ended_ = false;
};

Result<std::unique_ptr<OpenFile>> IssmFile::open(const std::shared_ptr<File>& self, const Caller&) {
  if (open_) return Error{EAGAIN, "a subnet manager has this file open already"};
  return {std::make_unique<OpenIssm>(std::static_pointer_cast<IssmFile>(self))};
}

void IssmFile::mark_removed() {
  File::mark_removed();
  if (open_) open_->end();
}

}  // namespace

std::shared_ptr<File> make_issm_file(Engine& engine, std::function<void(bool open)> set_manager) {
  return std::make_shared<IssmFile>(engine, std::move(set_manager));
}

}  // namespace rocefs
