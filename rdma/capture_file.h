// The pcap file of the tree: echo a path to start capturing into it, `off` to stop; cat shows the
// path and how many packets it holds. On the control thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine.h"
#include "core/file.h"
#include "core/tree.h"
#include "core/worker.h"
#include "rdma/fabric.h"
#include "rdma/pcap.h"

namespace rocefs {

class CaptureFile final : public std::enable_shared_from_this<CaptureFile> {
 public:
  // `failed` is told why a capture ended by itself. All outlive the engine's thread.
  CaptureFile(Engine& engine, Fabric& fabric, Worker& worker,
              std::function<void(std::string why)> failed)
      : engine_(engine), fabric_(fabric), worker_(worker), failed_(std::move(failed)) {}

  void set_own_mount(dev_t device) { own_mount_ = device; }

  void add_file(Tree& tree, const std::string& directory);
  // Ends the capture, if there is one; answers when its file is closed.
  void stop(Answer<void> answer);

 private:
  std::string show() const;
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer);
  void start(std::string path, const Caller& caller, Answer<void> answer);
  void begin(const std::string& path, Fd file, Answer<void> answer);
  void broken(const std::string& path, int code);

  Engine& engine_;
  Fabric& fabric_;
  Worker& worker_;
  std::function<void(std::string)> failed_;
  std::optional<dev_t> own_mount_;
  std::string path_;                      // empty: off
  bool changing_ = false;                 // a start or a stop is under way
  bool broken_ = false;                   // and the capture has ended by itself meanwhile
  std::shared_ptr<PcapCapture> capture_;  // touched on the core's thread, but for its count
};

}  // namespace rocefs
