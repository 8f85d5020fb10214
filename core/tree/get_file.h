// get: the texts of many files in one read, the counterpart of `set`.
#pragma once

#include <string>

#include "core/loop/poll_loop.h"
#include "core/tree/tree.h"

namespace rocefs {

// A write(2) of PATH… names the files, as patterns; it replaces that of an earlier write of the
// open file, and must name one file at least (ENOENT, EISDIR, EACCES, ENAMETOOLONG; ENOMEM: the
// user's queries hold too much). Reads give a line PATH=TEXT for each, in the order of the
// patterns, 128 KiB at most, then the end of the file; reads after the end begin anew. A text is
// shown without its last newline, others as \n, a backslash as two. Files that a pattern stands for
// are left out if who opened `get` may not read them, if their text is longer than a page,
// or if a read of it fails. Texts are what is known: no other thread or process is waited for.
// Walks of all readers share turns of half a millisecond of the control thread; E2BIG for a walk
// without an end. Tree and loop outlive the file. Control thread.
void add_get_file(Tree& tree, const std::string& directory, PollLoop& loop);

}  // namespace rocefs
