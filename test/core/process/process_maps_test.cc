// Mappings of a process: by the kernel's query, where it exists, and by its text.
#include "core/process/process_maps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace rocefs;

namespace {

constexpr uint64_t kPage = 4096;

// Pages of this process: readable and writable, readable, not to be touched, none; and again.
struct Pages {
  static constexpr size_t kCount = 8;
  uint8_t* const at = static_cast<uint8_t*>(
      ::mmap(nullptr, kCount* kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Pages() {
    REQUIRE(at != MAP_FAILED);
    for (size_t first : {0, 4}) {
      ::mprotect(at + (first + 1) * kPage, kPage, PROT_READ);
      ::mprotect(at + (first + 2) * kPage, kPage, PROT_NONE);
      ::munmap(at + (first + 3) * kPage, kPage);
    }
  }
  ~Pages() { ::munmap(at, kCount * kPage); }
  uint64_t page(size_t number) const { return reinterpret_cast<uint64_t>(at) + number * kPage; }
};

ProcessMaps own_maps() {
  return ProcessMaps(Fd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)));
}

}  // namespace

TEST_CASE("process maps: read(), ask() and allow() agree on what may be read and written") {
  Pages pages;
  ProcessMaps maps = own_maps();
  struct Row {
    const char* what;
    uint64_t address, length;
    bool reads, writes;
  };
  const Row rows[] = {
      {"nothing", pages.page(3), 0, true, true},
      {"a page", pages.page(0), kPage, true, true},
      {"some of its bytes", pages.page(0) + 17, 100, true, true},
      {"one that may be read", pages.page(1), kPage, true, false},
      {"two, of two mappings", pages.page(0), 2 * kPage, true, false},
      {"the last byte of one and the first of the next", pages.page(1) - 1, 2, true, false},
      {"one that may not be touched", pages.page(2), 1, false, false},
      {"up to one that may not be touched", pages.page(0), 2 * kPage + 1, false, false},
      {"a hole", pages.page(3), 1, false, false},
      {"what begins in a hole", pages.page(4) - 1, 2, false, false},
      {"behind a hole", pages.page(4), kPage, true, true},
      {"beyond all", ~uint64_t{0} - kPage, 1, false, false},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    for (bool writes : {false, true}) {
      bool wanted = writes ? row.writes : row.reads;
      CHECK(maps.read(row.address, row.length, writes) == wanted);
      CHECK(maps.ask(row.address, row.length, writes).value_or(wanted) == wanted);
      CHECK(maps.allow(row.address, row.length, writes) == wanted);
    }
  }
}

TEST_CASE("process maps: a file without maps answers nothing and allows nothing") {
  ProcessMaps none(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  CHECK(none.ask(4096, 1, false) == std::nullopt);
  CHECK(!none.allow(4096, 1, false));
}
