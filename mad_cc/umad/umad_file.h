// The file dev/infiniband/umadN: the MAD layer of one port, by the kernel's user_mad ABI, so that
// programs of libibumad run as they are (drivers/infiniband/core/user_mad.c, Documentation/
// infiniband/user_mad.rst).
//
// What differs: a read before an agent has registered ends with no octets; what a device that was
// removed is asked ends with ENODEV; a read that waits ends with EINTR whatever interrupts it, also
// where the kernel would begin it again; one write has at most umad::kMaxWrite octets; and the end
// of a long answer's first read, data and ENOSPC, needs the kernel's leave to ptrace(2) the reader.
#pragma once

#include <memory>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/umad/reader_memory.h"
#include "mad_cc/umad/umad_reads.h"

namespace rocefs {

// Control thread. The engine and the port outlive the file and all that is open. Its node is to be
// removed from the tree when the device's driver lets go of it: that ends what is open. `memory` is
// one for all files. `log` is for dmesg.
std::shared_ptr<File> make_umad_file(Engine& engine, MadPort& port,
                                     std::shared_ptr<ReaderMemory> memory, UmadReads::Log log);

}  // namespace rocefs
