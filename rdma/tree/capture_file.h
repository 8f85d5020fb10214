// The pcap file of the tree: echo a path to start a capture into it, `off` to stop; cat shows the
// path and the number of packets. Control thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/caller_file.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"
#include "rdma/tree/pcap.h"

namespace rocefs {

class CaptureFile final : public std::enable_shared_from_this<CaptureFile> {
 public:
  // `failed` gets the reason when a capture ends by an error. All outlive the engine's thread.
  CaptureFile(Engine& engine, Fabric& fabric, CallerFiles& files,
              std::function<void(std::string why)> failed)
      : engine_(engine), fabric_(fabric), files_(files), failed_(std::move(failed)) {}

  void add_file(Tree& tree, const std::string& directory);
  // Ends the capture, if there is one; answers when its file is closed.
  void stop(Answer<void> answer);

 private:
  std::string show() const;
  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer);
  void start(const std::string& path, const OperationPtr& operation, Answer<void> answer);
  void begin(Answer<void> answer);
  void write(const PcapCapture::Piece& piece);
  void broken(const Error& why);
  void close();
  void stopped(const Result<void>& result);

  Engine& engine_;
  Fabric& fabric_;
  CallerFiles& files_;
  std::function<void(std::string)> failed_;
  std::string path_;                      // empty: off
  bool changing_ = false;                 // a start or a stop is in progress
  bool opening_ = false;                  // a start without its file yet
  bool broken_ = false;                   // the capture has ended by an error, which was reported
  std::vector<Answer<void>> stopping_;    // answers of the stop in progress
  CallerFilePtr file_;                    // until it is being closed
  std::shared_ptr<PcapCapture> capture_;  // touched on the core's thread, but for its count
};

}  // namespace rocefs
