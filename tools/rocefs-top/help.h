// Help: the keys, as a page.
#pragma once

#include <cstddef>

#include "tools/rocefs-top/page.h"

namespace rocefs::top {

Page help_page(size_t width, size_t height);

}  // namespace rocefs::top
