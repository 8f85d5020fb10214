#include "tools/watch/mount_shape.h"

#include <cerrno>

#include "tools/watch/getter.h"

namespace rocefs {
namespace {

// Names of the entries; none if there is no such directory.
Result<std::vector<std::string>> names_in(const MountFiles& files, const std::string& directory) {
  std::vector<std::string> names;
  Result<std::vector<MountFiles::Entry>> entries = files.list(directory);
  if (!entries && entries.error().code == ENOENT) return names;
  if (!entries) return entries.error();
  for (MountFiles::Entry& entry : *entries) names.push_back(std::move(entry.name));
  return names;
}

}  // namespace

Result<Shape> shape_of(const MountFiles& files) {
  const std::string debug(kDebugFiles);
  NetworkNames names;
  const std::pair<std::string, std::vector<std::string>*> kLists[] = {
      {debug + "fabric", &names.switches},
      {"class/infiniband", &names.devices},
      {debug + "links", &names.links}};
  for (const auto& [directory, list] : kLists) {
    Result<std::vector<std::string>> found = names_in(files, directory);
    if (!found) return found.error();
    *list = std::move(*found);
  }
  Getter ports(files, {std::string(kSwitchPorts)});
  if (Result<void> looked = ports.look(); !looked) return looked.error();
  return shape_of(std::move(names), ports.lines());
}

Result<std::string> shape_json(const MountFiles& files, bool stores) {
  Result<Shape> shape = shape_of(files);
  if (!shape) return shape.error();
  return shape_json(*shape, files.mount_point(), stores);
}

}  // namespace rocefs
