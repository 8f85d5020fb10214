// Version of this build, by the Makefile. A file of its own, so that little is compiled anew when
// it changes.
#pragma once

namespace rocefs {

// Version of what others rely on in the tree: names, formats, meanings (doc/abi.md).
inline constexpr unsigned kTreeAbi = 1;

extern const char* const kVersion;
extern const char* const kBuiltWith;     // compiler and libraries
extern const char* const kProviderAbis;  // private ABIs of libibverbs that have a provider

}  // namespace rocefs
