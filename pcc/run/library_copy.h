// LibraryCopy: a shared library as its file was when it was copied, independent of later changes to
// the file.
#pragma once

#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

struct LibraryCopy {
  std::string file;
  Fd memory;  // sealed: nobody changes it

  // Reads the file: ENOEXEC, with a reason that names it, for one that cannot be read or is no
  // shared library of this machine. Runs no code of it.
  static Result<LibraryCopy> of(const std::string& file);
};

// Loads the copy with dlopen(), RTLD_NOW and RTLD_LOCAL; each call gives another image. By its file
// the dynamic linker would return an image that is loaded already, and keep a library with
// STB_GNU_UNIQUE symbols (C++ templates) for good. $ORIGIN in the library does not work. ENOEXEC
// with a reason that names the file. The copy can go then. Release with dlclose().
Result<void*> open_library(const LibraryCopy& copy);

}  // namespace rocefs
