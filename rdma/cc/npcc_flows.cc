#include "rdma/cc/npcc_flows.h"

#include <cstring>

namespace rocefs {

size_t NpccFlows::Hash::operator()(const NpccFlowKey& key) const {
  uint64_t hash = uint64_t{key.dest_qpn} << 16 | key.ingress;
  auto take = [&](const Ip& ip) {
    uint64_t words[2];
    std::memcpy(words, ip.data(), sizeof words);
    for (uint64_t word : words) {
      hash = (hash ^ word) * 0x9fb21c651e98df25;
      hash ^= hash >> 32;
    }
  };
  take(key.source);
  take(key.destination);
  return hash;
}

NpccFlow& NpccFlows::see(const NpccFlowKey& key, TimeNs now, bool& fresh) {
  age(now);
  auto found = index_.find(key);
  fresh = found == index_.end();
  if (!fresh) {
    flows_.splice(flows_.begin(), flows_, found->second);
  } else {
    if (flows_.size() == kCapacity) {
      index_.erase(flows_.back().key);
      flows_.pop_back();
    }
    flows_.emplace_front();
    flows_.front().key = key;
    index_[key] = flows_.begin();
  }
  flows_.front().seen = now;
  return flows_.front();
}

NpccFlow* NpccFlows::find(const NpccFlowKey& key) {
  auto found = index_.find(key);
  return found == index_.end() ? nullptr : &*found->second;
}

void NpccFlows::age(TimeNs now) {
  while (!flows_.empty() && now - flows_.back().seen >= kAge) {
    index_.erase(flows_.back().key);
    flows_.pop_back();
  }
}

void NpccFlows::clear() {
  flows_.clear();
  index_.clear();
}

}  // namespace rocefs
