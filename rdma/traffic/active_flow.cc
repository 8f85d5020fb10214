#include "rdma/traffic/active_flow.h"

#include <cerrno>

#include "rdma/nic/device.h"

namespace rocefs {

namespace {

// A port that there is not is refused when the flow starts.
FabricResources& part_of(const FlowParts& parts) {
  Port* port = parts.fabric.port(parts.spec.from);
  return port ? port->host().fabric() : parts.fabric;
}

}  // namespace

ActiveFlow::ActiveFlow(FlowParts parts, bool apart)
    : parts_(std::move(parts)),
      part_(part_of(parts_)),
      poll_(event_of<&ActiveFlow::on_completions>(this)),
      apart_(apart) {}

void ActiveFlow::begin() {
  running_ = true;
  ++part_.outstanding().flows;
  stats().started_ns.set(static_cast<uint64_t>(scheduler().now()));
}

void ActiveFlow::end(TimeNs now, Result<void> result) {
  stats().ended_ns.set(static_cast<uint64_t>(now));
  if (!apart()) {
    stop();
    return report(std::move(result));
  }
  halt();
  ending_ = std::make_shared<const bool>(true);
  part_.alone([this, ending = std::weak_ptr(ending_), result = std::move(result)]() mutable {
    if (ending.expired()) return;
    stop();
    report(std::move(result));
  });
}

void ActiveFlow::report(Result<void> result) {
  if (auto ended = std::exchange(parts_.ended, nullptr)) ended(std::move(result));
}

// Does nothing more by itself. In the part of `from`.
void ActiveFlow::halt() {
  scheduler().cancel(poll_);
  if (std::exchange(running_, false)) --part_.outstanding().flows;
}

void ActiveFlow::stop() {
  if (running_ && stats().ended_ns.get() == 0) {
    stats().ended_ns.set(static_cast<uint64_t>(scheduler().now()));
  }
  halt();
  ending_.reset();
  close();
  scheduler().cancel(poll_);
}

void ActiveFlow::poll_after(TimeNs time) {
  if (!ending_ && !poll_.scheduled()) scheduler().after(poll_, time);
}

void ActiveFlow::device_removed() {
  end(scheduler().now(), Error{ENODEV, "device removed"});
}

}  // namespace rocefs
