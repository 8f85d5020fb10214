// Shape of a mount's network.
#pragma once

#include <string>

#include "core/base/result.h"
#include "tools/picture/shape.h"
#include "tools/watch/mount_files.h"

namespace rocefs {

Result<Shape> shape_of(const MountFiles& files);
// As a JSON object; `stores`: the page may store.
Result<std::string> shape_json(const MountFiles& files, bool stores);

}  // namespace rocefs
