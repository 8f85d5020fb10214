// Words of the register pages, which somebody else reads or writes meanwhile: whole, and in order
// where that is said.
#pragma once

namespace rocefs {

template <class T>
T load_word(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
// What is read after it is at least as new.
template <class T>
T load_announced(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T>
void store_word(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}
// What was stored before it is there.
template <class T>
void announce(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

}  // namespace rocefs
