#include "rdma/fabric/destination_table.h"

namespace rocefs {

DestinationTable::Slot& DestinationTable::slot_of(const Key& key) {
  size_t at = place_of(key);
  while (slots_[at].taken && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void DestinationTable::grow() {
  std::vector<Slot> before(slots_.size() * 2);
  std::swap(before, slots_);
  for (const Slot& slot : before) {
    if (slot.taken) slot_of(slot.key) = slot;
  }
}

void DestinationTable::copy(const Ip& address, const Mac& mac) {
  if (const Destination* found = find(key_of(mac.data())))
    set(key_of(address), Destination(*found));
}

void DestinationTable::set(const Key& key, const Destination& at) {
  if ((taken_ + 1) * 2 > slots_.size()) grow();
  Slot& slot = slot_of(key);
  taken_ += !slot.taken;
  slot = {key, at, true};
  ++version_;
}

}  // namespace rocefs
