#include "core/version/version.h"

#ifdef __clang__
#define ROCEFS_COMPILER __VERSION__
#else
#define ROCEFS_COMPILER "g++ " __VERSION__
#endif

namespace rocefs {

const char* const kVersion = ROCEFS_VERSION;
const char* const kBuiltWith = ROCEFS_COMPILER ", " ROCEFS_LIBRARIES;
const char* const kProviderAbis = ROCEFS_PROVIDER_ABIS;

}  // namespace rocefs
