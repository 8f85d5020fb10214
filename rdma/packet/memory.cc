#include "rdma/packet/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace rocefs {

namespace {

// Private pages; those that nobody writes are one page of zeroes. Null if there is no memory.
uint8_t* map_pages(uint64_t size, int rights) {
  void* bytes = ::mmap(nullptr, size, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return bytes == MAP_FAILED ? nullptr : static_cast<uint8_t*>(bytes);
}

}  // namespace

std::shared_ptr<LocalMemory> LocalMemory::create(uint64_t size) {
  if (size == 0) return std::shared_ptr<LocalMemory>(new LocalMemory(std::span<uint8_t>()));
  uint8_t* bytes = map_pages(size, PROT_READ | PROT_WRITE);
  if (!bytes) return nullptr;
  // Huge pages, where the kernel grants them: else each packet begins a page or two that the CPU
  // has to look up.
  constexpr uint64_t kHugePage = uint64_t{2} << 20;
  if (size >= kHugePage) (void)::madvise(bytes, size, MADV_HUGEPAGE);
  return std::shared_ptr<LocalMemory>(new LocalMemory(std::span(bytes, size)));
}

// All blank memories are the same pages: a flow that begins and ends maps none.
std::shared_ptr<LocalMemory> LocalMemory::create_blank(uint64_t size) {
  static uint8_t* const pages = map_pages(kMaxBlank, PROT_READ);
  if (!pages || size > kMaxBlank) return nullptr;
  return std::shared_ptr<LocalMemory>(new LocalMemory(std::span(pages, size), true));
}

LocalMemory::~LocalMemory() {
  if (!blank() && !bytes().empty()) ::munmap(bytes().data(), bytes().size());
}

Memory::Outcome DirectMemory::write(uint64_t offset, std::span<const uint8_t> source,
                                    MemoryListener&, uint64_t) {
  if (!blank_ && !source.empty()) {
    std::memmove(bytes_.data() + offset, source.data(), source.size());
  }
  return Outcome::kDone;
}

Memory::Outcome DirectMemory::read(uint64_t offset, std::span<uint8_t> into, MemoryListener&,
                                   uint64_t) {
  if (!into.empty()) std::memcpy(into.data(), bytes_.data() + offset, into.size());
  return Outcome::kDone;
}

Memory::Outcome DirectMemory::atomic(uint64_t offset, const AtomicOperation& operation,
                                     uint64_t& original, MemoryListener&, uint64_t) {
  std::memcpy(&original, bytes_.data() + offset, sizeof original);
  uint64_t next = operation.result(original);
  if (!blank_) std::memcpy(bytes_.data() + offset, &next, sizeof next);
  return Outcome::kDone;
}

namespace {

bool rights_fit(uint8_t access) {
  return !(access & (kRemoteWrite | kRemoteAtomic)) || (access & kLocalWrite);
}

}  // namespace

// Begins a new generation of a slot: old keys and references stay invalid for long.
Result<uint32_t> MemoryTable::take_slot() {
  uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (regions_.size() < kMaxRegions) {
    index = static_cast<uint32_t>(regions_.size());
    regions_.emplace_back();
  } else {
    return Error{ENOMEM, "no memory region is free"};
  }
  uint32_t generation = regions_[index].generation + 1;
  regions_[index] = {};
  regions_[index].generation = generation;
  taken_.resize(regions_.size());
  taken_[index] = true;
  return index;
}

Result<uint32_t> MemoryTable::add(std::shared_ptr<Memory> memory, uint64_t address, uint64_t length,
                                  uint32_t pd, uint8_t access, uint64_t base) {
  if (!rights_fit(access)) {
    return Error{EINVAL, "remote write or atomic rights need the local write right"};
  }
  if (access & kZeroBased) address = 0;
  if (length > 0 && address + (length - 1) < address) {
    return Error{EINVAL, "the region ends behind the last address"};
  }
  Result<uint32_t> index = take_slot();
  if (!index) return index;
  MemoryRegion& region = regions_[*index];
  region.direct = memory->direct();
  region.blank = memory->blank();
  region.renamed = address != memory->program_address();
  region.memory = std::move(memory);
  region.address = address;
  region.length = length;
  region.base = base;
  region.pd = pd;
  region.access = access;
  return *index << 8 | (region.generation & 0xff);
}

Result<void> MemoryTable::change(uint32_t key, uint32_t pd, uint8_t access) {
  if (!rights_fit(access)) {
    return Error{EINVAL, "remote write or atomic rights need the local write right"};
  }
  if (!find(key)) return errorf(EINVAL, "no memory region has the key {:#x}", key);
  MemoryRegion& region = regions_[index_of(key)];
  if ((region.access ^ access) & kZeroBased) {
    return Error{EINVAL, "another base of the addresses needs another translation"};
  }
  region.pd = pd;
  region.access = access;
  return {};
}

Result<uint32_t> MemoryTable::add_window(uint32_t pd, WindowType type) {
  Result<uint32_t> index = take_slot();
  if (!index) return index;
  MemoryRegion& window = regions_[*index];
  window.window = true;
  window.window_type = type;
  window.pd = pd;
  return *index << 8 | (window.generation & 0xff);
}

Result<void> MemoryTable::remove(uint32_t key) {
  uint32_t index = index_of(key);
  bool there = index < taken_.size() && taken_[index] &&
               (regions_[index].window || (regions_[index].generation & 0xff) == (key & 0xff));
  if (!there) return errorf(EINVAL, "no memory region has the key {:#x}", key);
  MemoryRegion& region = regions_[index];
  if (region.windows > 0) return Error{EBUSY, "a memory window is bound to the region"};
  if (region.window && region.memory) unbind(region);
  region.memory.reset();
  taken_[index] = false;
  free_.push_back(index);
  return {};
}

MemoryRegion* MemoryTable::window_of(uint32_t key) {
  uint32_t index = index_of(key);
  bool there = index < taken_.size() && taken_[index] && regions_[index].window;
  return there ? &regions_[index] : nullptr;
}

bool MemoryTable::bind(const Binding& binding, uint32_t pd, uint32_t qpn) {
  MemoryRegion* window = window_of(binding.key);
  if (!window || window->pd != pd) return false;
  bool again = window->window_type == WindowType::kType1;
  bool zero_based = binding.access & kZeroBased;
  bool bindable = again ? !zero_based : !window->memory && binding.length > 0;
  if (!bindable) return false;
  bool unbinds = again && binding.length == 0;
  const MemoryRegion* region = find(binding.region_key);
  uint8_t rights = binding.access & (kRemoteWrite | kRemoteAtomic) ? kLocalWrite : 0;
  bool fits = region && !region->window && region->pd == pd && (region->access & kWindowBind) &&
              (region->access & rights) == rights &&
              region->covers(binding.address, binding.length);
  if (!fits && !unbinds) return false;
  if (window->memory) unbind(*window);
  window->generation = ((window->generation >> 8) + 1) << 8 | (binding.key & 0xff);
  if (unbinds) return true;
  window->memory = region->memory;
  window->direct = region->direct;
  window->blank = region->blank;
  window->address = zero_based ? 0 : binding.address;
  window->length = binding.length;
  window->base = region->offset_of(binding.address);
  window->access = binding.access & kRemoteAny;
  window->qpn = qpn;
  window->parent = index_of(binding.region_key);
  ++regions_[window->parent].windows;
  ++bound_windows_;
  return true;
}

bool MemoryTable::invalidate(uint32_t key, uint32_t qpn) {
  const MemoryRegion* found = find(key);
  bool ours = found && found->window && found->window_type == WindowType::kType2;
  if (!ours || found->qpn != qpn) return false;
  unbind(regions_[index_of(key)]);
  return true;
}

void MemoryTable::forget_windows(uint32_t qpn) {
  for (size_t i = 0; bound_windows_ > 0 && i < regions_.size(); ++i) {
    MemoryRegion& region = regions_[i];
    bool type2 = region.window && region.window_type == WindowType::kType2;
    if (type2 && region.memory && region.qpn == qpn) unbind(region);
  }
}

void MemoryTable::unbind(MemoryRegion& window) {
  window.memory.reset();
  --regions_[window.parent].windows;
  --bound_windows_;
}

}  // namespace rocefs
