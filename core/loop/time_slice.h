// The calling thread's turns on a CPU that others want too.
#pragma once

namespace rocefs {

// Short turns that come soon: beside programs that spin, a thread that has been woken then runs
// within a fraction of a millisecond. Needs no privilege; kernels that do not know it (before 6.12)
// change nothing.
void ask_for_short_slices();

}  // namespace rocefs
