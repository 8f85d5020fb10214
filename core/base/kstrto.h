// Numbers and words in text as the kernel's sysfs stores read them (lib/kstrtox.c, lib/string.c).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/result.h"

namespace rocefs {

// kstrtoull(): one leading + and one trailing newline are allowed. Base 0 takes 0x… and octal 0….
// EINVAL for anything else, ERANGE beyond 64 bits.
Result<uint64_t> kstrtou64(std::string_view text, unsigned base);

// kstrtobool(): decided by the first letter, or the first two of on and off. EINVAL otherwise.
Result<bool> kstrtobool(std::string_view text);

// sysfs_match_string(): which of `words` it is; EINVAL if none.
Result<size_t> match_word(std::string_view text, std::span<const std::string_view> words);

// `text` in quotes for a reason: shortened, without its newline, control characters as '?'.
std::string quoted(std::string_view text);

}  // namespace rocefs
