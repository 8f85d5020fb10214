// A shared library as its file is now, whatever is done to the file later.
#pragma once

#include <string>

#include "core/base/result.h"

namespace rocefs {

// dlopen(), RTLD_NOW and RTLD_LOCAL, of a private copy of the file: each call gives another image.
// The linker would give the same one for the same file while it has it, and it keeps a library that
// cannot be unloaded (STB_GNU_UNIQUE symbols, as of C++ templates) for good; and a file that is
// written over would change under the code that runs. $ORIGIN in it is of no use. ENOEXEC, and a
// reason that names the file. Given back with dlclose().
Result<void*> open_library_copy(const std::string& file);

}  // namespace rocefs
