// A shared library as its file is now, independent of later changes to the file.
#pragma once

#include <string>

#include "core/base/result.h"

namespace rocefs {

// Loads a private copy of the file with dlopen(), RTLD_NOW and RTLD_LOCAL; each call gives another
// image. Without the copy the dynamic linker returns the loaded image for the same file, keeps a
// library with STB_GNU_UNIQUE symbols (C++ templates) for good, and code would change when the file
// is overwritten. $ORIGIN in the library does not work. ENOEXEC with a reason that names the file.
// Release with dlclose().
Result<void*> open_library_copy(const std::string& file);
// Reads the file's header: ENOEXEC for one that is no shared library of this machine. Runs no code
// of the file.
Result<void> check_library(const std::string& file);

}  // namespace rocefs
