// pcc/rpc: a message to the card's processor, and what it says to it. Each open file has an answer
// of its own: write `ping`, read `pong`; write `echo TEXT`, read TEXT.
#pragma once

#include <functional>

#include "core/tree/file.h"
#include "pcc/card/pcc_device.h"

namespace rocefs {

class RpcFile final : public File {
 public:
  // `allowed` says why no message may be sent now. `device` outlives the file.
  RpcFile(PccDevice& device, std::function<Result<void>()> allowed)
      : device_(device), allowed_(std::move(allowed)) {}

  bool readable() const override { return true; }
  bool writable() const override { return true; }
  uint64_t size() const override { return kPageSize; }
  bool has_end() const override { return false; }
  FileDoc doc() const override;
  Result<std::unique_ptr<OpenFile>> open(const std::shared_ptr<File>& self,
                                         const Caller& caller) override;

 private:
  class Open;
  // What `text` asks for, answered without its newline.
  void send(std::string_view text, Answer<std::string> answer);

  PccDevice& device_;
  const std::function<Result<void>()> allowed_;
};

}  // namespace rocefs
