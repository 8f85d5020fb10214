// Status pipe: `rocefs run` starts a mount in the foreground, which says through this descriptor
// that it serves. Whatever it prints may be an error.
#pragma once

namespace rocefs {

// Hands the descriptor to the program that this process executes next.
void hand_status_pipe(int descriptor);

// Takes the descriptor out of the environment; -1 if nobody waits. Call once.
int take_status_pipe();

}  // namespace rocefs
