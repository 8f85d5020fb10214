// FUSE operations, with the answers of kernfs (fs/kernfs/file.c, fs/sysfs/file.c).
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/clock.h"
#include "fs/fuse_server.h"

namespace rocefs {

struct stat FuseServer::stat_of(const Tree::Node& node) {
  struct stat status {};
  status.st_ino = node.ino;
  status.st_blksize = 4096;
  status.st_uid = node.uid;
  status.st_gid = node.gid;
  status.st_atim = node.atime;
  status.st_mtim = status.st_ctim = node.mtime;
  status.st_nlink = 1;
  switch (node.kind) {
    case Tree::Kind::kDirectory:
      status.st_mode = S_IFDIR | node.mode;
      status.st_nlink = 2;
      for (Ino child : tree_.entries(node.ino)) {
        status.st_nlink += tree_.find(child)->kind == Tree::Kind::kDirectory;
      }
      break;
    case Tree::Kind::kLink:
      status.st_mode = S_IFLNK | 0777;
      break;
    case Tree::Kind::kFile:
      status.st_mode = S_IFREG | node.mode;
      status.st_size = static_cast<off_t>(node.file->size());
      break;
    case Tree::Kind::kSocket:
      status.st_mode = S_IFSOCK | node.mode;
      break;
  }
  return status;
}

namespace {

mode_t type_of(Tree::Kind kind) {
  switch (kind) {
    case Tree::Kind::kDirectory:
      return S_IFDIR;
    case Tree::Kind::kLink:
      return S_IFLNK;
    case Tree::Kind::kFile:
      return S_IFREG;
    case Tree::Kind::kSocket:
      return S_IFSOCK;
  }
  return 0;
}

}  // namespace

std::shared_ptr<const Listing> FuseServer::list(const Tree::Node& directory) {
  Listing listing{{".", directory.ino, S_IFDIR}, {"..", directory.parent, S_IFDIR}};
  const std::vector<Ino>& entries = tree_.entries(directory.ino);
  listing.reserve(listing.size() + entries.size());
  for (Ino child_ino : entries) {
    Tree::Node* child = tree_.find(child_ino);
    listing.push_back({child->name, child->ino, type_of(child->kind)});
  }
  std::weak_ptr<const Listing>& newest = listings_[directory.ino];
  std::shared_ptr<const Listing> shared = newest.lock();
  if (!shared || *shared != listing) {
    newest = shared = std::make_shared<const Listing>(std::move(listing));
  }
  return shared;
}

void FuseServer::release_directory(Ino ino, uint64_t handle) {
  directories_.release(handle);
  auto newest = listings_.find(ino);
  if (newest != listings_.end() && newest->second.expired()) listings_.erase(newest);
}

void FuseServer::note_attributes(Ino ino) {
  if (options_.attributes_changed) options_.attributes_changed(tree_.path_of(ino));
}

namespace {

void on_init(void*, fuse_conn_info* connection) {
  connection->want &=
      ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
                             FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  // Cache forever: a link's target never changes.
  connection->want |= connection->capable & FUSE_CAP_CACHE_SYMLINKS;
  // Write limit: a longer write(2) comes in several requests, and so does one of that length which
  // does not begin at a page boundary, because the kernel passes on whole pages.
  connection->max_write = SavedChannel::kMaxWrite;
}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  FuseServer& server = FuseServer::of(request);
  Tree::Node* directory = server.tree_.find(parent);
  if (!directory) return void(fuse_reply_err(request, ENOENT));
  fuse_entry_param entry{};
  if (Tree::Node* node = server.tree_.child(parent, name)) {
    server.saved_.lookups.note(parent);
    entry.ino = node->ino;
    entry.attr = server.stat_of(*node);
    entry.attr_timeout = server.attribute_timeout(*node);
    entry.entry_timeout = server.timeout(*node);
  } else {
    if (directory->changes) return void(fuse_reply_err(request, ENOENT));
    entry.entry_timeout = 3600;  // there never will be: the kernel need not ask again
  }
  fuse_reply_entry(request, &entry);
}

void reply_attributes(fuse_req_t request, fuse_ino_t ino, std::optional<uint64_t> size = {}) {
  FuseServer& server = FuseServer::of(request);
  if (Tree::Node* node = server.tree_.find(ino)) {
    struct stat status = server.stat_of(*node);
    if (size) status.st_size = static_cast<off_t>(*size);
    return void(fuse_reply_attr(request, &status, server.attribute_timeout(*node)));
  }
  std::optional<Tree::Node> departed = server.tree_.departed(ino);
  if (!departed) return void(fuse_reply_err(request, ENOENT));
  struct stat status = server.stat_of(*departed);
  fuse_reply_attr(request, &status, 0);
}

// Getattr with an open file comes from lseek(2) to the end; fstat(2) sends one without
// (fs/fuse/file.c, fuse_file_llseek), and looks like stat(2). A text's length is made for those who
// have it open, not for each `ls -l`.
void on_getattr(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FuseServer& server = FuseServer::of(request);
  Tree::Node* node = server.tree_.find(ino);
  if (!node || !node->file || node->file->has_end()) return reply_attributes(request, ino);
  if (info) return void(fuse_reply_err(request, EINVAL));
  if (!server.files_.is_open(ino)) return reply_attributes(request, ino);
  server.requests_->run(
      request, server.channel_.key(), {}, nullptr,
      [&](const OperationPtr&, Requests::Ticket ticket) {
        node->file->open_size([ino, ticket = std::move(ticket)](Result<uint64_t> size) mutable {
          if (!size) return ticket.fail(size.error());
          if (fuse_req_t answered = ticket.take()) {
            reply_attributes(answered, ino, *size);
          }
        });
      });
}

void on_setattr(fuse_req_t request, fuse_ino_t ino, struct stat* wanted, int set, fuse_file_info*) {
  FuseServer& server = FuseServer::of(request);
  Tree::Node* node = server.tree_.find(ino);
  if (!node) return void(fuse_reply_err(request, ENOENT));
  if (set & FUSE_SET_ATTR_MODE) node->mode = wanted->st_mode & 07777;
  if (set & FUSE_SET_ATTR_UID) node->uid = wanted->st_uid;
  if (set & FUSE_SET_ATTR_GID) node->gid = wanted->st_gid;
  if (set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
    server.tree_.note_access();
  }
  if (set & FUSE_SET_ATTR_ATIME) node->atime = wanted->st_atim;
  if (set & FUSE_SET_ATTR_MTIME) node->mtime = wanted->st_mtim;
  if (set & FUSE_SET_ATTR_ATIME_NOW) node->atime = date_now();
  // Size unchanged: kernfs accepts a truncation and only updates the time.
  if (set & (FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_SIZE)) node->mtime = date_now();
  server.note_attributes(ino);
  reply_attributes(request, ino);
}

void on_readlink(fuse_req_t request, fuse_ino_t ino) {
  Tree::Node* node = FuseServer::of(request).tree_.find(ino);
  if (!node || node->kind != Tree::Kind::kLink) return void(fuse_reply_err(request, ENOENT));
  fuse_reply_readlink(request, node->target.c_str());
}

// Refuses to root too what the mode does not offer, as kernfs_fop_open().
int open_error(const Tree::Node& node, int flags) {
  int access = flags & O_ACCMODE;
  bool reads = access != O_WRONLY, writes = access != O_RDONLY;
  if (writes && (!(node.mode & 0222) || !node.file->writable())) return EACCES;
  if (reads && (!(node.mode & 0444) || !node.file->readable())) return EACCES;
  return flags & O_DIRECT ? EINVAL : 0;
}

// Stream flag, which libfuse 3.14 does not know. Without it the kernel would allow one call at a
// time into an open regular file, and a waiting read would block every write (FMODE_ATOMIC_POS).
int reply_open(fuse_req_t request, const fuse_file_info& info, bool device) {
  if (!device) return fuse_reply_open(request, &info);
  fuse_open_out out{};
  out.fh = info.fh;
  out.open_flags = FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE | FOPEN_STREAM;
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof out);
}

void on_open(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FuseServer& server = FuseServer::of(request);
  Tree::Node* node = server.tree_.find(ino);
  if (!node || !node->file) return void(fuse_reply_err(request, ENODEV));
  if (int code = open_error(*node, info->flags)) return void(fuse_reply_err(request, code));
  const auto opener = std::make_shared<Opener>(Requests::caller_of(request));
  const Caller& caller = opener->caller;
  Shares::Share share = server.files_.share(caller.uid);
  if (!share) return void(fuse_reply_err(request, ENFILE));
  bool writes = (info->flags & O_ACCMODE) != O_RDONLY;
  std::string path = writes ? server.tree_.path_of(ino) : std::string();
  bool device = node->file->device();
  auto file = node->file->open(node->file, caller);
  if (!file) {
    if (writes && server.options_.refused) server.options_.refused(path, caller, file.error());
    return void(fuse_reply_err(request, file.error().code));
  }
  if (writes && node->file->keeps_opener()) opener->rights = rights_of(caller);
  if (info->flags & O_TRUNC) {
    node->mtime = date_now();
    server.note_attributes(ino);
  }
  info->fh = server.files_.open({std::move(*file), std::move(path), opener, std::move(share)}, ino,
                                caller);
  info->direct_io = 1;
  // Interrupted meanwhile: the kernel will not release the handle.
  if (reply_open(request, *info, device) == -ENOENT) server.files_.release(info->fh);
}

void on_release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  FuseServer::of(request).files_.release(info->fh);
  fuse_reply_err(request, 0);
}

// Detects reads through the page cache: since Linux 6.5 splice(2) and sendfile(2) use it in spite
// of FOPEN_DIRECT_IO, and private mappings always did. The cache misses changes by stores, and a
// short answer becomes the file's size. Such a reader gets an error that makes cat, cp and the
// libraries use read(2). Only read(2) has a lock owner in its request.
bool fills_page_cache(const fuse_in_header& request) {
  return !(reinterpret_cast<const fuse_read_in*>(&request + 1)->read_flags & FUSE_READ_LOCKOWNER);
}

void on_read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* info) {
  FuseServer& server = FuseServer::of(request);
  if (fills_page_cache(server.channel_.request())) return void(fuse_reply_err(request, EINVAL));
  OpenSlot* slot = server.files_.find(info->fh);
  if (!slot || !slot->file) return void(fuse_reply_err(request, EBADF));
  server.requests_->run(request, server.channel_.key(), {}, slot->opener,
                        [&](const OperationPtr& operation, Requests::Ticket ticket) {
                          operation->set_nonblocking(info->flags & O_NONBLOCK);
                          slot->file->read(
                              static_cast<uint64_t>(offset), size, operation,
                              [ticket = std::move(ticket)](Result<std::string> text) mutable {
                                if (!text) return ticket.fail(text.error());
                                if (fuse_req_t answered = ticket.take()) {
                                  fuse_reply_buf(answered, text->data(), text->size());
                                }
                              });
                        });
}

void on_write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t,
              fuse_file_info* info) {
  FuseServer& server = FuseServer::of(request);
  OpenSlot* slot = server.files_.find(info->fh);
  if (!slot || !slot->file) return void(fuse_reply_err(request, EBADF));
  server.requests_->run(
      request, server.channel_.key(), slot->path, slot->opener,
      [&](const OperationPtr& operation, Requests::Ticket ticket) {
        operation->set_request_id(server.channel_.key());
        operation->set_nonblocking(info->flags & O_NONBLOCK);
        if (server.options_.accepted) {
          operation->on_accepted(
              [tell = server.options_.accepted, path = slot->path, caller = operation->caller()](
                  std::string_view text, std::optional<Moment> applied) {
                tell(path, text, caller, applied);
              });
        }
        slot->file->write({data, size}, operation,
                          [ticket = std::move(ticket)](Result<size_t> taken) mutable {
                            if (!taken) return ticket.fail(taken.error());
                            if (fuse_req_t answered = ticket.take_stored()) {
                              fuse_reply_write(answered, *taken);
                            }
                          });
      });
}

void on_poll(fuse_req_t request, fuse_ino_t, fuse_file_info* info, fuse_pollhandle* handle) {
  FuseServer& server = FuseServer::of(request);
  PollWake wake(server.notifier_, handle);
  OpenSlot* slot = server.files_.find(info->fh);
  if (!slot || !slot->file) return void(fuse_reply_err(request, EBADF));
  if (handle) {
    const auto* asked = reinterpret_cast<const fuse_poll_in*>(&server.channel_.request() + 1);
    server.files_.saved(info->fh).poll_handle = asked->kh;
  }
  short events = slot->file->poll(handle ? Task(std::move(wake)) : Task());
  fuse_reply_poll(request, static_cast<unsigned>(events));
}

// Ioctl argument: without FUSE_IOCTL_UNRESTRICTED the kernel copies it by the command's _IOC_SIZE,
// for 32-bit callers too. isatty(3) calls this on every file, so the refusal is not logged.
void on_ioctl(fuse_req_t request, fuse_ino_t, unsigned command, void*, fuse_file_info* info,
              unsigned flags, const void* in, size_t in_size, size_t room) {
  FuseServer& server = FuseServer::of(request);
  if (flags & FUSE_IOCTL_DIR) return void(fuse_reply_err(request, ENOTTY));
  OpenSlot* slot = server.files_.find(info->fh);
  if (!slot || !slot->file) return void(fuse_reply_err(request, EBADF));
  server.requests_->run(request, server.channel_.key(), slot->path, slot->opener,
                        [&](const OperationPtr& operation, Requests::Ticket ticket) {
                          std::string_view argument(static_cast<const char*>(in), in ? in_size : 0);
                          slot->file->ioctl(
                              command, argument, room, operation,
                              [room, ticket = std::move(ticket)](Result<IoctlReply> reply) mutable {
                                if (!reply && reply.error().code != ENOTTY)
                                  return ticket.fail(reply.error());
                                fuse_req_t answered = ticket.take();
                                if (!answered) return;
                                if (!reply) return void(fuse_reply_err(answered, ENOTTY));
                                fuse_reply_ioctl(answered, reply->result, reply->bytes.data(),
                                                 std::min(reply->bytes.size(), room));
                              });
                        });
}

void on_opendir(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FuseServer& server = FuseServer::of(request);
  Tree::Node* node = server.tree_.find(ino);
  if (!node) return void(fuse_reply_err(request, ENOENT));
  Caller caller = Requests::caller_of(request);
  Shares::Share share = server.directories_.share(caller.uid);
  if (!share) return void(fuse_reply_err(request, ENFILE));
  info->fh = server.directories_.open({server.list(*node), std::move(share)}, ino, caller);
  if (fuse_reply_open(request, info) == -ENOENT) server.release_directory(ino, info->fh);
}

void on_readdir(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info* info) {
  DirectorySlot* slot = FuseServer::of(request).directories_.find(info->fh);
  if (!slot || !slot->used()) return void(fuse_reply_err(request, EBADF));
  std::string out(size, '\0');
  size_t used = 0;
  for (auto i = static_cast<size_t>(offset); i < slot->listing->size(); ++i) {
    const DirectoryEntry& entry = (*slot->listing)[i];
    struct stat status {};
    status.st_ino = entry.ino;
    status.st_mode = entry.type;
    size_t wanted = fuse_add_direntry(request, out.data() + used, size - used, entry.name.c_str(),
                                      &status, static_cast<off_t>(i + 1));
    if (wanted > size - used) break;
    used += wanted;
  }
  fuse_reply_buf(request, out.data(), used);
}

void on_releasedir(fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
  FuseServer::of(request).release_directory(ino, info->fh);
  fuse_reply_err(request, 0);
}

void on_statfs(fuse_req_t request, fuse_ino_t) {
  struct statvfs status {};
  status.f_bsize = status.f_frsize = 4096;
  status.f_namemax = 255;
  fuse_reply_statfs(request, &status);
}

void on_listxattr(fuse_req_t request, fuse_ino_t, size_t size) {
  if (size > 0) return void(fuse_reply_buf(request, nullptr, 0));
  fuse_reply_xattr(request, 0);
}

// mknod: allowed for a socket that we bind ourselves. All else is refused to everybody, root
// included, as are the operations below, like in sysfs.
void on_mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t) {
  FuseServer& server = FuseServer::of(request);
  std::string path = server.tree_.path_of(parent) + "/" + name;
  if (!S_ISSOCK(mode) || !server.binder_ || server.tree_.resolve(path) ||
      !server.binder_->asks(Requests::caller_of(request).pid, path)) {
    return void(fuse_reply_err(request, S_ISREG(mode) ? EACCES : EPERM));
  }
  const Tree::Node& node = *server.tree_.find(server.tree_.add_socket(path));
  fuse_entry_param entry{};
  entry.ino = node.ino;
  entry.attr = server.stat_of(node);
  entry.attr_timeout = entry.entry_timeout = server.timeout(node);
  fuse_reply_entry(request, &entry);
}
// No fsync of a directory in kernfs.
void refuse_fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(request, EINVAL);
}
void refuse_create(fuse_req_t request, fuse_ino_t, const char*, mode_t, fuse_file_info*) {
  fuse_reply_err(request, EACCES);
}
void refuse_mkdir(fuse_req_t request, fuse_ino_t, const char*, mode_t) {
  fuse_reply_err(request, EPERM);
}
void refuse_name(fuse_req_t request, fuse_ino_t, const char*) {
  fuse_reply_err(request, EPERM);
}
void refuse_symlink(fuse_req_t request, const char*, fuse_ino_t, const char*) {
  fuse_reply_err(request, EPERM);
}
void refuse_rename(fuse_req_t request, fuse_ino_t, const char*, fuse_ino_t, const char*, unsigned) {
  fuse_reply_err(request, EPERM);
}
void refuse_link(fuse_req_t request, fuse_ino_t, fuse_ino_t, const char*) {
  fuse_reply_err(request, EPERM);
}

// Exceptions must not pass libfuse, which is C: one (only out of memory is expected) ends the
// request, not the mount. Handlers reply last, so a request that throws has not been answered.
template <auto Handler>
struct Guarded;
template <class... Args, void (*Handler)(fuse_req_t, Args...)>
struct Guarded<Handler> {
  static void call(fuse_req_t request, Args... args) noexcept {
    try {
      Handler(request, args...);
    } catch (...) {
      fuse_reply_err(request, ENOMEM);
    }
  }
};

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = Guarded<on_lookup>::call;
  ops.getattr = Guarded<on_getattr>::call;
  ops.setattr = Guarded<on_setattr>::call;
  ops.readlink = Guarded<on_readlink>::call;
  ops.open = Guarded<on_open>::call;
  ops.release = Guarded<on_release>::call;
  ops.read = Guarded<on_read>::call;
  ops.write = Guarded<on_write>::call;
  ops.poll = Guarded<on_poll>::call;
  ops.ioctl = Guarded<on_ioctl>::call;
  ops.opendir = Guarded<on_opendir>::call;
  ops.readdir = Guarded<on_readdir>::call;
  ops.releasedir = Guarded<on_releasedir>::call;
  ops.statfs = on_statfs;
  ops.listxattr = on_listxattr;
  ops.fsyncdir = refuse_fsync;
  ops.mknod = Guarded<on_mknod>::call;
  ops.create = refuse_create;
  ops.mkdir = refuse_mkdir;
  ops.unlink = ops.rmdir = refuse_name;
  ops.symlink = refuse_symlink;
  ops.rename = refuse_rename;
  ops.link = refuse_link;
  return ops;  // no flush: the kernel stops asking at the first ENOSYS
}

}  // namespace

const fuse_lowlevel_ops& FuseServer::operations() {
  static const fuse_lowlevel_ops ops = make_operations();
  return ops;
}

}  // namespace rocefs
