// EngineSession: a handle's (pcc/run/handle.h) access to the engine while it owns the windows of a
// device. The device stays claimed as long as the session exists; the destructor stops the run and
// releases the claim.
#pragma once

#include <memory>
#include <string_view>

#include "pcc/api/libmango.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class EngineSession {
 public:
  virtual ~EngineSession() = default;

  // Takes the windows of all queue pairs; CFR is off until stop(). The pages stay mapped until the
  // next run() or the end of the session. `pollers` is informational. run() and stop(): one thread
  // at a time.
  struct Pages {
    const rocefs_signals_page* signals = nullptr;
    rocefs_control_page* control = nullptr;
  };
  virtual mango_status_e run(unsigned pollers, Pages* pages) = 0;
  // Returns the windows; later writes to the control page have no effect. No-op if no run is
  // active.
  virtual void stop() = 0;
  // Any thread, also during run() and stop(). Never blocks: a line that cannot be sent is dropped.
  virtual void log(mango_log_level_e level, std::string_view text) = 0;
};

// Claims a device for this program. Returns null and sets `status` on failure: NO_DEVICE, BUSY,
// NOT_SUPPORTED, PERMISSION, IO. Throws std::bad_alloc only.
std::unique_ptr<EngineSession> open_program_session(const char* device, mango_status_e* status);

}  // namespace rocefs
