// Waiting without a call of the kernel.
#pragma once

namespace rocefs {

// Tells the CPU that the thread waits in a loop, so that a thread beside it on the core has more.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace rocefs
