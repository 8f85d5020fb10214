#include "core/tree/access.h"

#include <algorithm>

namespace rocefs {
namespace {

constexpr uint64_t kOverride = uint64_t{1} << 1, kReadSearch = uint64_t{1} << 2;  // capability.h

TreeUser user_of(const Caller& opener, const OperationPtr& operation, uint64_t grants_all) {
  TreeUser user{opener.uid, opener.gid, {}, false};
  if (Result<Rights> who = operation->rights()) {
    user.groups = std::move(who->groups);
    user.all = (who->capabilities & grants_all) != 0;
  }
  return user;
}

}  // namespace

TreeUser reader_of(const Caller& opener, const OperationPtr& operation) {
  return user_of(opener, operation, kOverride | kReadSearch);
}

TreeUser writer_of(const OperationPtr& operation) {
  const Caller& opener = operation->opener();
  if (opener.uid == 0) return {.groups = {}, .all = true};
  return user_of(opener, operation, kOverride);
}

// As the kernel's acl_permission_check() and capable_wrt_inode_uidgid().
bool may(const TreeUser& user, const Tree::Node& node, mode_t access) {
  if (user.all) return true;
  const auto has = [&](int shift) { return (node.mode >> shift & access) == access; };
  if (user.uid == node.uid) return has(6);
  if (user.gid == node.gid) return has(3);
  if (!user.groups) return has(3) && has(0);
  const auto& groups = *user.groups;
  return has(std::find(groups.begin(), groups.end(), node.gid) != groups.end() ? 3 : 0);
}

bool may_reach(Tree& tree, const TreeUser& user, const Tree::Node& node) {
  for (const Tree::Node* at = &node; at->ino != kRootIno;) {
    at = tree.find(at->parent);
    if (!at || !may(user, *at, 1)) return false;
  }
  return true;
}

// A mode without any w holds for root too, as in kernfs_fop_open().
bool may_write(Tree& tree, const TreeUser& user, const Tree::Node& file) {
  return (file.mode & 0222) != 0 && may(user, file, 2) && may_reach(tree, user, file);
}

}  // namespace rocefs
