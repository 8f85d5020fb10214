// kernel/debug/rocefs/resources: the objects of RDMA programs, as `rdma resource show` lists them.
#pragma once

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "rdma/client/clients.h"
#include "rdma/cm/ucma.h"

namespace rocefs {

// The text is made on the core. References outlive the file.
class ResourcesFile final : public Stream {
 public:
  ResourcesFile(Engine& engine, Clients& clients, const Ucma& ids)
      : engine_(engine), clients_(clients), ids_(ids) {}

  void content(Answer<std::string> answer) override {
    engine_.call<std::string>(
        [this]() -> Result<std::string> { return clients_.resources() + ids_.resources(); },
        std::move(answer));
  }
  FileDoc doc() const override {
    return {
        "value", {}, {}, "objects of RDMA programs: DEVICE KIND KEY=VALUE…, with the owner's pid"};
  }

 private:
  Engine& engine_;
  Clients& clients_;
  const Ucma& ids_;
};

}  // namespace rocefs
