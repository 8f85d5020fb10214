// mango_pcc_create(): the only function of a handle that needs a mount.
#include <new>

#include "pcc/api/engine_session.h"
#include "pcc/api/libmango.h"
#include "pcc/run/handle.h"

using namespace rocefs;

namespace {

// Seed of every program: runs are repeatable.
constexpr uint64_t kSeed = 1;

}  // namespace

extern "C" mango_status_e mango_pcc_create(const char* roce_dev_name, mango_pcc_h* pcc) {
  if (!roce_dev_name || !pcc) return MANGO_STATUS_INVALID_PARAM;
  *pcc = nullptr;
  try {
    mango_status_e status = MANGO_STATUS_ERROR;
    std::unique_ptr<EngineSession> session = open_program_session(roce_dev_name, &status);
    if (!session) return status;
    *pcc = (new PccHandle(std::move(session), kSeed))->c_handle();
    return MANGO_STATUS_OK;
  } catch (const std::bad_alloc&) {
    return MANGO_STATUS_NO_MEMORY;
  } catch (...) {
    return MANGO_STATUS_ERROR;
  }
}
