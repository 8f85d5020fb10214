// EngineSession: how a handle (pcc/run/handle.h) reaches the engine whose windows it owns. One
// exists while the device is claimed; its destructor stops what runs and gives the claim back.
#pragma once

#include <memory>
#include <string_view>

#include "pcc/api/libmango.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class EngineSession {
 public:
  virtual ~EngineSession() = default;

  // Takes the windows of all queue pairs: CFR is off from now on. The pages stay mapped until the
  // next run(), or the session's end. `pollers` is for people. One thread at a time, stop() too.
  struct Pages {
    const rocefs_signals_page* signals = nullptr;
    rocefs_control_page* control = nullptr;
  };
  virtual mango_status_e run(unsigned pollers, Pages* pages) = 0;
  // Gives the windows back; what is written to the control page means nothing any more. Nothing
  // happens when they are not taken.
  virtual void stop() = 0;
  // Any thread, also while others are in run() or stop(). Never blocks: what cannot be sent is
  // left out.
  virtual void log(mango_log_level_e level, std::string_view text) = 0;
};

// Claims a device for this program. Null, and why in `status`, when that fails: NO_DEVICE, BUSY,
// NOT_SUPPORTED, PERMISSION, IO. std::bad_alloc is the only exception.
std::unique_ptr<EngineSession> open_program_session(const char* device, mango_status_e* status);

}  // namespace rocefs
