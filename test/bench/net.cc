#include "test/bench/net.h"

namespace rocefs::bench {

Topology star(unsigned count, bool with_switch, uint64_t rate_bps, TimeNs delay_ns) {
  Topology topology;
  for (unsigned i = 0; i < count; ++i) {
    auto octet = static_cast<uint8_t>(i + 1);
    PortSpec port;
    port.netdev = "n" + std::to_string(i);
    port.mac = {2, 0, 0, 0, 0, octet};
    port.ipv4 = {10, 77, 0, octet};
    topology.devices.push_back({"d" + std::to_string(i), "", {port}});
  }
  LinkSpec link;
  link.rate_bps = rate_bps;
  link.delay_ns = delay_ns;
  link.b = "sw";
  if (with_switch) {
    topology.switches.push_back({"sw"});
    for (const DeviceSpec& device : topology.devices) {
      link.a = device.name;
      topology.links.push_back(link);
    }
  } else {
    link.a = "d0";
    link.b = "d1";
    topology.links.push_back(link);
  }
  return topology;
}

namespace {

Device& device_of(Fabric& fabric, const std::string& name) {
  Device* device = fabric.device(name);
  require(device, "no such device");
  return *device;
}

void connect(Qp& qp, Qp& peer, Device& own, Device& other, uint32_t window) {
  QpAttributes attributes;
  attributes.path_mtu = 4096;
  attributes.window = window;
  attributes.access = kRemoteWrite;
  attributes.remote_qpn = peer.number();
  attributes.path.local = gids_of(own.port().spec())[1];
  attributes.path.remote = gids_of(other.port().spec())[1];
  require(bool(qp.bring_up(attributes)), "the queue pair cannot be brought up");
}

}  // namespace

Pair::Pair(Fabric& fabric, const std::string& from, const std::string& to, const Size& size)
    : near_device_(device_of(fabric, from)),
      far_device_(device_of(fabric, to)),
      queue_(2 * size.depth),
      near_memory_(LocalMemory::create(size.memory)),
      far_memory_(LocalMemory::create(size.memory)),
      near_address_(near_device_.allocate_address(size.memory)),
      far_address_(far_device_.allocate_address(size.memory)),
      near_key_(
          *near_device_.memory().add(near_memory_, near_address_, size.memory, kPd, kLocalWrite)),
      far_key_(*far_device_.memory().add(far_memory_, far_address_, size.memory, kPd,
                                         kLocalWrite | kRemoteWrite)),
      near_(&make(near_device_, size.depth)),
      far_(&make(far_device_, size.depth)) {
  connect(*near_, *far_, near_device_, far_device_, size.window);
  connect(*far_, *near_, far_device_, near_device_, size.window);
}

Pair::~Pair() {
  near_device_.destroy_qp(*near_);
  far_device_.destroy_qp(*far_);
  (void)near_device_.memory().remove(near_key_);
  (void)far_device_.memory().remove(far_key_);
}

Qp& Pair::make(Device& device, uint32_t depth) {
  QpInit init;
  init.pd = kPd;
  init.send_cq = init.receive_cq = &queue_;
  init.send_depth = init.receive_depth = depth;
  Result<Qp*> qp = device.create_qp(init);
  require(bool(qp), "no queue pair is free");
  return **qp;
}

void Pair::write(uint64_t offset, uint32_t length) {
  SendRequest request;
  request.op = SendOp::kWrite;
  request.sges = Sge{near_address_ + offset, length, near_key_};
  request.remote_address = far_address_ + offset;
  request.rkey = far_key_;
  require(bool(near_->post(request)), "the send queue is full");
}

size_t Pair::completed() {
  size_t taken = queue_.poll(batch_);
  for (size_t i = 0; i < taken; ++i) {
    require(batch_[i].status == WcStatus::kSuccess, "a work request failed");
  }
  return taken;
}

}  // namespace rocefs::bench
