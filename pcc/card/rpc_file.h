// RpcFile: pcc/rpc, a message to the card's processor and its reply. Each open file has its own
// reply: write `ping`, read `pong`; write `echo TEXT`, read TEXT; write `dump QPN`, read what the
// algorithm holds of that queue pair.
#pragma once

#include <functional>

#include "core/tree/file.h"
#include "pcc/card/pcc_device.h"

namespace rocefs {

class RpcFile final : public File {
 public:
  // `allowed` returns an error if no message can be sent. `device` outlives the file.
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
  // Executes `text`; answers without a newline.
  void send(std::string_view text, Answer<std::string> answer);

  PccDevice& device_;
  const std::function<Result<void>()> allowed_;
};

}  // namespace rocefs
