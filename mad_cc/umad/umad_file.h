// Makes the file dev/infiniband/umadN: the MAD layer of one port with the kernel's user_mad ABI,
// for unmodified programs of libibumad (drivers/infiniband/core/user_mad.c, Documentation/
// infiniband/user_mad.rst).
//
// Differences from the kernel: a read before an agent has registered returns 0; calls on a removed
// device fail with ENODEV; a waiting read fails with EINTR on any interruption, even where the
// kernel would restart it; one write has at most umad::kMaxWrite octets; the first read of a long
// answer, data and ENOSPC, needs permission to ptrace(2) the reader.
#pragma once

#include <memory>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/umad/reader_memory.h"
#include "mad_cc/umad/umad_reads.h"

namespace rocefs {

// Control thread. The engine and the port outlive the file and all open instances. Removing the
// node from the tree, when the device's driver unbinds, ends them. `memory` is shared by all files.
// `log` writes to dmesg.
std::shared_ptr<File> make_umad_file(Engine& engine, MadPort& port,
                                     std::shared_ptr<ReaderMemory> memory, UmadReads::Log log);

}  // namespace rocefs
