// Inject: the directory where faults are armed by echo and counted by cat.
//
//   echo "f1 drop mb_0-sw_0 opcode=RC_WRITE_MIDDLE skip=2" > inject/add
//   cat inject/list inject/f1/fired; echo 1 > inject/f1/remove
//
// Control thread; the injectors belong to the core's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/tree.h"
#include "rdma/fabric/injector.h"
#include "rdma/network/fabric.h"
#include "rdma/tree/files.h"

namespace rocefs {

class Inject {
 public:
  // All outlive the engine's thread; the fabric also outlives this object.
  Inject(Tree& tree, const std::string& directory, Engine& engine, Fabric& fabric,
         const LinkKnobs& knobs);
  ~Inject();
  Inject(const Inject&) = delete;
  Inject& operator=(const Inject&) = delete;

  // Removes every fault: first on the core's thread, then on the control thread.
  void clear_all();
  void finish_reset();

 private:
  struct Entry {
    std::string text;  // text of the store
    FaultPtr fault;
    Injector* injector = nullptr;
  };

  void add(std::string_view line, Answer<void> answer);
  void add_directory(const std::string& name, const std::shared_ptr<Attribute>& fired);
  void remove(const std::string& name, Answer<void> answer);
  std::string list() const;

  Tree& tree_;
  const std::string directory_;
  Engine& engine_;
  Fabric& fabric_;
  const LinkKnobs knobs_;
  std::map<const Link*, std::unique_ptr<Injector>> injectors_;  // one per link
  std::map<std::string, Entry> entries_;
};

}  // namespace rocefs
