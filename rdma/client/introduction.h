// First request of a client, as far as it is the same in every version of rdma/uapi.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {

static_assert(offsetof(rocefs_request, u.hello.magic) == offsetof(rocefs_introduction, magic));
static_assert(offsetof(rocefs_request, u.hello.version) == offsetof(rocefs_introduction, version));
static_assert(offsetof(rocefs_request, u.claim.version) == offsetof(rocefs_introduction, version));

// Why a client of another version is refused; nullopt for one of this, and for what is no client.
// `size`: octets of the request that were sent.
inline std::optional<Error> refusal_of_version(const rocefs_request& request, size_t size) {
  if (size < sizeof(rocefs_introduction) || request.u.hello.magic != ROCEFS_UAPI_MAGIC ||
      request.u.hello.version == ROCEFS_UAPI_VERSION) {
    return std::nullopt;
  }
  return errorf(EPROTO, "this engine speaks version {} of the interface for programs, it {}",
                static_cast<int>(ROCEFS_UAPI_VERSION), request.u.hello.version);
}

}  // namespace rocefs
