// Scheduling of the calling thread on a shared CPU.
#pragma once

namespace rocefs {

// Requests short time slices (EEVDF): a woken thread then runs within a fraction of a millisecond
// beside spinning programs. Needs no privilege; no effect before Linux 6.12.
void ask_for_short_slices();

}  // namespace rocefs
