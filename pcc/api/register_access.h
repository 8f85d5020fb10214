// Access to words of the register pages, which the other side reads or writes at the same time:
// each word whole, ordered where a function says so.
#pragma once

namespace rocefs {

template <class T>
T load_word(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
// Acquire load: reads after it see what was written before the word was announced.
template <class T>
T load_announced(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <class T>
void store_word(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}
// Release store: writes before it are visible to a reader of the word.
template <class T>
void announce(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

}  // namespace rocefs
