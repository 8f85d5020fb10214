// Registered memory of a client: regions, and memory windows.
#include <cerrno>

#include "rdma/client/client.h"

namespace rocefs {

void Client::populate(uint64_t address, uint64_t length, uint32_t access, Populated then) {
  constexpr uint32_t kWrites = kLocalWrite | kRemoteWrite | kRemoteAtomic | kWindowBind;
  process_->run([alive = std::weak_ptr(alive_), process = process_.get(), address, length,
                 writes = (access & kWrites) != 0, then = std::move(then)]() mutable -> Task {
    bool populated = process->populated(address, length, writes);
    return [alive = std::move(alive), populated, then = std::move(then)]() mutable {
      if (!alive.expired()) then(populated);
    };
  });
}

namespace {

constexpr uint32_t kOnDemand = 1 << 6;  // IBV_ACCESS_ON_DEMAND

Process::Pages pages_of(uint32_t access) {
  return access & kOnDemand ? Process::Pages::kOnDemand : Process::Pages::kPopulated;
}

const Error kNoMemory{EFAULT, "the region's memory is not mapped or not accessible"};

Result<void> check_bounds(const rocefs_reg_mr& wanted) {
  if (wanted.address + wanted.length >= wanted.address) return {};
  return Error{EINVAL, "the region passes the end of the address space"};
}

}  // namespace

void Client::reg_mr(const rocefs_reg_mr& wanted, Reply reply) {
  if (!pds_.find(wanted.pd)) return reply(refusal(no_such("protection domain", wanted.pd)));
  if (Result<void> fits = check_bounds(wanted); !fits) return reply(refusal(fits.error()));
  // All pages are touched before the region exists, as the kernel pins them.
  Process::Pages pages = pages_of(wanted.access);
  bool on_demand = pages == Process::Pages::kOnDemand;
  populate(wanted.address, on_demand ? 0 : wanted.length, wanted.access,
           [this, wanted, pages, reply = std::move(reply)](bool populated) mutable {
             rocefs_answer answer{};
             Result<void> added = kNoMemory;
             if (populated) {
               auto memory = std::make_shared<ClientMemory>(process_, wanted.address, pages);
               added = add_region(wanted, std::move(memory), answer);
             }
             reply(added ? answer : refusal(added.error()));
           });
}

Result<void> Client::share_mr(const rocefs_reg_mr& wanted, Attachment& attachment,
                              rocefs_answer& answer) {
  auto memory =
      std::make_shared<SharedClientMemory>(process_, std::move(attachment.memory), wanted.address);
  answer.u.mr.offset = attachment.offset;
  return add_region(wanted, std::move(memory), answer);
}

Result<void> Client::add_region(const rocefs_reg_mr& wanted, std::shared_ptr<Memory> memory,
                                rocefs_answer& answer) {
  if (!device_) return Error{ENODEV, "the device has left"};
  Pd* pd = pds_.find(wanted.pd);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (mrs_.full()) return Error{ENOMEM, "too many regions"};
  Result<uint8_t> access = region_access_of(wanted.access & ~kOnDemand);
  if (!access) return access.error();
  Result<uint32_t> key =
      device_->memory().add(std::move(memory), wanted.iova, wanted.length, pd->number, *access);
  if (!key) return key.error();
  ++pd->users;
  answer.u.mr.handle =
      mrs_.add(std::make_unique<Mr>(Mr{*key, pd, nullptr, pages_of(wanted.access)}));
  answer.u.mr.lkey = answer.u.mr.rkey = *key;
  return {};
}

void Client::rereg_mr(const rocefs_rereg_mr& wanted, Reply reply) {
  bool moves = wanted.flags & ROCEFS_REREG_TRANSLATION;
  Result<void> fits = moves ? check_bounds(wanted.mr) : Result<void>();
  if (!fits) return reply(refusal(fits.error()));
  uint32_t access = wanted.mr.access;
  Mr* mr = mrs_.find(wanted.handle);
  bool on_demand = mr && mr->pages == Process::Pages::kOnDemand;
  if (mr && (wanted.flags & ROCEFS_REREG_ACCESS) && pages_of(wanted.mr.access) != mr->pages) {
    return reply(refusal({EOPNOTSUPP, "a region stays with or without paging on demand"}));
  }
  bool keeps_access = device_ && mr && !(wanted.flags & ROCEFS_REREG_ACCESS);
  if (keeps_access) access = device_->memory().find(mr->key)->access;
  populate(wanted.mr.address, moves && !on_demand ? wanted.mr.length : 0, access,
           [this, wanted, reply = std::move(reply)](bool populated) mutable {
             rocefs_answer answer{};
             Result<void> changed =
                 populated ? change_region(wanted, answer) : Result<void>(kNoMemory);
             if (!changed) return reply(refusal(changed.error()));
             process_->run([reply = std::move(reply), answer]() mutable -> Task {
               return [reply = std::move(reply), answer]() mutable { reply(answer); };
             });
           });
}

// Other memory makes another region, with keys of its own; rights and domain are changed in place.
Result<void> Client::change_region(const rocefs_rereg_mr& wanted, rocefs_answer& answer) {
  if (!device_) return Error{ENODEV, "the device has left"};
  constexpr uint32_t kAll = ROCEFS_REREG_TRANSLATION | ROCEFS_REREG_PD | ROCEFS_REREG_ACCESS;
  Mr* mr = mrs_.find(wanted.handle);
  if (!mr) return no_such("region", wanted.handle);
  if (wanted.flags == 0 || (wanted.flags & ~kAll)) {
    return errorf(EINVAL, "changes {:#x} of a region are not supported", wanted.flags);
  }
  MemoryTable& table = device_->memory();
  if (mr->dm) return Error{EOPNOTSUPP, "a region of device memory does not change"};
  const MemoryRegion& before = *table.find(mr->key);
  if (before.windows > 0) return Error{EBUSY, "a memory window is bound to the region"};
  Pd* pd = wanted.flags & ROCEFS_REREG_PD ? pds_.find(wanted.mr.pd) : mr->pd;
  if (!pd) return no_such("protection domain", wanted.mr.pd);
  uint8_t access = before.access;
  if (wanted.flags & ROCEFS_REREG_ACCESS) {
    Result<uint8_t> given = region_access_of(wanted.mr.access & ~kOnDemand);
    if (!given) return given.error();
    access = *given;
  }
  Result<uint32_t> key = mr->key;
  if (wanted.flags & ROCEFS_REREG_TRANSLATION) {
    auto memory = std::make_shared<ClientMemory>(process_, wanted.mr.address, mr->pages);
    key = table.add(std::move(memory), wanted.mr.iova, wanted.mr.length, pd->number, access);
    if (!key) return key.error();
    (void)table.remove(mr->key);
  } else if (Result<void> changed = table.change(mr->key, pd->number, access); !changed) {
    return changed;
  }
  --mr->pd->users;
  ++pd->users;
  mr->key = *key;
  mr->pd = pd;
  answer.u.mr.handle = wanted.handle;
  answer.u.mr.lkey = answer.u.mr.rkey = *key;
  return {};
}

Result<void> Client::dereg_mr(uint32_t handle) {
  Mr* mr = mrs_.find(handle);
  if (!mr) return nothing_to_destroy("region", handle);
  if (Result<void> removed = device_->memory().remove(mr->key); !removed) return removed;
  --mr->pd->users;
  if (mr->dm) --mr->dm->users;
  mrs_.take(handle);
  return {};
}

Result<void> Client::alloc_dm(const rocefs_alloc_dm& wanted, Attachment& attachment,
                              rocefs_answer& answer) {
  uint64_t size = attachment.layout.size;
  if (dms_.full() || dm_bytes_ + size > ROCEFS_MAX_DM) {
    return errorf(ENOMEM, "{} of {} bytes of device memory are in use", dm_bytes_,
                  static_cast<int>(ROCEFS_MAX_DM));
  }
  constexpr uint64_t kNowhere = ~uint64_t{0};  // the program reaches it by calls alone
  auto memory =
      std::make_shared<SharedClientMemory>(process_, std::move(attachment.memory), kNowhere);
  dm_bytes_ += size;
  answer.u.created = attachment.layout;
  answer.u.created.handle =
      dms_.add(std::make_unique<Dm>(Dm{std::move(memory), wanted.length, size, 0}));
  return {};
}

Result<void> Client::free_dm(uint32_t handle) {
  Dm* dm = dms_.find(handle);
  if (!dm) return nothing_to_destroy("device memory", handle);
  if (dm->users > 0) return Error{EBUSY, "a region of the device memory is in use"};
  dm_bytes_ -= dm->size;
  dms_.take(handle);
  return {};
}

Result<void> Client::reg_dm_mr(const rocefs_reg_dm_mr& wanted, rocefs_answer& answer) {
  Dm* dm = dms_.find(wanted.dm);
  Pd* pd = pds_.find(wanted.pd);
  if (!dm) return no_such("device memory", wanted.dm);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (!(wanted.access & kZeroBased)) {
    return Error{EINVAL, "a region of device memory is zero-based"};
  }
  if (wanted.offset > dm->length || wanted.length > dm->length - wanted.offset) {
    return errorf(EINVAL, "{} bytes at {} of {} bytes of device memory", wanted.length,
                  wanted.offset, dm->length);
  }
  if (mrs_.full()) return Error{ENOMEM, "too many regions"};
  Result<uint8_t> access = region_access_of(wanted.access);
  if (!access) return access.error();
  Result<uint32_t> key =
      device_->memory().add(dm->memory, 0, wanted.length, pd->number, *access, wanted.offset);
  if (!key) return key.error();
  ++pd->users;
  ++dm->users;
  answer.u.mr.handle = mrs_.add(std::make_unique<Mr>(Mr{*key, pd, dm, Process::Pages::kPopulated}));
  answer.u.mr.lkey = answer.u.mr.rkey = *key;
  return {};
}

Result<void> Client::alloc_mw(const rocefs_alloc_mw& wanted, rocefs_answer& answer) {
  Pd* pd = pds_.find(wanted.pd);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (wanted.type != 1 && wanted.type != 2) {
    return errorf(EINVAL, "memory windows of type {} are not known", wanted.type);
  }
  if (mws_.full()) return Error{ENOMEM, "too many memory windows"};
  WindowType type = wanted.type == 1 ? WindowType::kType1 : WindowType::kType2;
  Result<uint32_t> key = device_->memory().add_window(pd->number, type);
  if (!key) return key.error();
  ++pd->users;
  answer.u.mr.handle = mws_.add(std::make_unique<Mw>(Mw{*key, pd}));
  answer.u.mr.rkey = *key;
  return {};
}

Result<void> Client::dealloc_mw(uint32_t handle) {
  Mw* mw = mws_.find(handle);
  if (!mw) return nothing_to_destroy("memory window", handle);
  if (Result<void> removed = device_->memory().remove(mw->key); !removed) return removed;
  --mw->pd->users;
  mws_.take(handle);
  return {};
}

}  // namespace rocefs
