// Access: what the modes of files and directories grant a user, for files that read or store others
// in the user's place. Control thread.
#pragma once

#include <optional>
#include <vector>

#include "core/tree/file.h"
#include "core/tree/tree.h"

namespace rocefs {

struct TreeUser {
  uid_t uid = 0;
  gid_t gid = 0;
  // Empty: unknown. Then a file of another user and group must grant it to both the group and
  // others.
  std::optional<std::vector<gid_t>> groups;
  bool all = false;  // by a capability
};

// Rights of who opened the file, while the caller waits. Reading needs CAP_DAC_OVERRIDE or
// CAP_DAC_READ_SEARCH to be granted all, writing the first of them, or uid 0.
TreeUser reader_of(const Caller& opener, const OperationPtr& operation);
TreeUser writer_of(const OperationPtr& operation);

// `access` as in the bits for others.
bool may(const TreeUser& user, const Tree::Node& node, mode_t access);
// Whether the user may search the directories above.
bool may_reach(Tree& tree, const TreeUser& user, const Tree::Node& node);
// Whether open(2) would let the user write.
bool may_write(Tree& tree, const TreeUser& user, const Tree::Node& file);

}  // namespace rocefs
