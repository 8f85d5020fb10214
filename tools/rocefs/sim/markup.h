// Markup: text in HTML.
#pragma once

#include <string>
#include <string_view>

#include "core/base/utf8.h"

namespace rocefs {

// Octets that are not UTF-8 become `?`.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (char c : valid_utf8(std::string(text))) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace rocefs
