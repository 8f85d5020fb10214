// Library that is no plugin.
extern "C" __attribute__((visibility("default"))) int nothing_to_see_here() {
  return 1;
}
