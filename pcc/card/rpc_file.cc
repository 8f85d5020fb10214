#include "pcc/card/rpc_file.h"

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

constexpr uint64_t kMaxQpn = 0xffffff;

}  // namespace

// File offsets are ignored: a write moves them too.
class RpcFile::Open final : public OpenFile {
 public:
  explicit Open(std::shared_ptr<RpcFile> file) : file_(std::move(file)) {}

  void read(uint64_t, size_t size, const OperationPtr&, Answer<std::string> answer) override {
    if (file_->removed()) return answer(Error{ENODEV, "the device was removed"});
    std::string part = reply_->substr(0, size);
    reply_->erase(0, part.size());
    answer(std::move(part));
  }

  void write(std::string_view data, const OperationPtr&, Answer<size_t> answer) override {
    if (file_->removed()) return answer(Error{ENODEV, "the device was removed"});
    if (data.size() > kPageSize) {
      return answer(errorf(EINVAL, "longer than {} bytes", size_t{kPageSize}));
    }
    // The answer may arrive after the file is closed.
    file_->send(without_newline(data),
                [reply = reply_, size = data.size(),
                 answer = std::move(answer)](Result<std::string> said) mutable {
                  if (!said) return answer(said.error());
                  *reply = *said + "\n";
                  answer(size);
                });
  }

  short poll(Task) override { return POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM; }

 private:
  std::shared_ptr<RpcFile> file_;
  std::shared_ptr<std::string> reply_ = std::make_shared<std::string>();
};

FileDoc RpcFile::doc() const {
  return {"trigger",
          "ping, echo TEXT, or dump QPN",
          {},
          "asks the card's processor: what is read back through the same open file is pong, "
          "TEXT, or parameters and state of the queue pair. "
          "EOPNOTSUPP in host mode, EHOSTUNREACH where the management link has no addresses"};
}

Result<std::unique_ptr<OpenFile>> RpcFile::open(const std::shared_ptr<File>& self, const Caller&) {
  return {std::make_unique<Open>(std::static_pointer_cast<RpcFile>(self))};
}

void RpcFile::send(std::string_view text, Answer<std::string> answer) {
  constexpr std::string_view kEchoWord = "echo ";
  if (Result<void> allowed = allowed_(); !allowed) return answer(allowed.error());
  if (text == "ping") return device_.echo("pong", std::move(answer));
  if (text.starts_with(kEchoWord)) {
    return device_.echo(std::string(text.substr(kEchoWord.size())), std::move(answer));
  }
  constexpr std::string_view kDumpWord = "dump ";
  if (text.starts_with(kDumpWord)) {
    Result<uint64_t> qpn = kstrtou64(text.substr(kDumpWord.size()), 10);
    if (qpn && *qpn <= kMaxQpn) return device_.dump(static_cast<uint32_t>(*qpn), std::move(answer));
  }
  answer(Error{EINVAL, "ping, echo TEXT or dump QPN is wanted"});
}

}  // namespace rocefs
