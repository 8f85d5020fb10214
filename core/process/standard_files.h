// Standard files: the descriptors 0, 1 and 2, which a caller may have closed.
#pragma once

namespace rocefs {

// Opens /dev/null in place of those of the descriptors 0 to 2 that are closed: the next files to be
// opened would become stdin, stdout or stderr, and take the text that is meant for those. Call
// first in main(). Writing to such a stdout fails, as it would to a closed one; programs that are
// executed have them, too.
void reserve_standard_files();

// Flushes stdout. Returns `status`, or 1 with a line on stderr, which begins with `program`, when
// the output could not be written.
int flush_standard_output(const char* program, int status);

}  // namespace rocefs
