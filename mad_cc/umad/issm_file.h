// Makes the file dev/infiniband/issmN: while it is open the port says IsSM, and a program is the
// manager of its subnet (drivers/infiniband/core/user_mad.c, ib_umad_sm_open()).
//
// Difference from the kernel: a second open fails with EAGAIN, also without O_NONBLOCK.
#pragma once

#include <functional>
#include <memory>

#include "core/loop/engine.h"
#include "core/tree/file.h"

namespace rocefs {

// Control thread. `set_manager` is called on the core thread, with true at the open and with false
// at the close, or when the node leaves the tree. The engine and what `set_manager` refers to
// outlive the file and its open instance.
std::shared_ptr<File> make_issm_file(Engine& engine, std::function<void(bool open)> set_manager);

}  // namespace rocefs
