// Tap: a TAP device that a program has handed over (rdma/uapi/host.h). Its settings are changed on
// a thread of their own: the kernel takes a lock for each that all network configuration shares.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/loop/worker.h"
#include "core/process/closer.h"

namespace rocefs {

class Tap : public std::enable_shared_from_this<Tap> {
 public:
  // EINVAL unless the descriptor is a TAP device with IFF_NO_PI and IFF_VNET_HDR. Waits for nobody.
  static Result<std::shared_ptr<Tap>> of(StrangerFd fd, Worker& worker);

  // Any thread.
  int descriptor() const { return fd_.get(); }
  // Any thread: whether the device has a carrier, soon.
  void set_carrier(bool carrier) const;
  // Any thread: checks the device and turns its offloads on, then calls `done` on the worker. An
  // error names what is wrong with the device.
  void prepare(const std::string& interface, UniqueFunction<void(Result<void>)> done) const;

 private:
  Tap(StrangerFd fd, Worker& worker) : fd_(std::move(fd)), worker_(worker) {}

  const StrangerFd fd_;
  Worker& worker_;
};

}  // namespace rocefs
