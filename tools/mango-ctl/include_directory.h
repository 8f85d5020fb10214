#pragma once

#include <string>

namespace rocefs {

// Directory of libmango.h; empty: left to the compiler. $MANGO_INCLUDE, else the one beside that of
// this program, in the build tree and where it is installed.
std::string include_directory();
// Directory of libmango.so, beside that of this program; empty: left to the compiler.
std::string library_directory();

}  // namespace rocefs
