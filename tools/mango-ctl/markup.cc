#include "tools/mango-ctl/markup.h"

#include <algorithm>

#include "core/base/text.h"

namespace rocefs {
namespace {

constexpr size_t kColumns = 80;

void fill_paragraph(std::string& out, std::string_view paragraph, size_t indent) {
  size_t column = indent;
  for (std::string_view word : split(paragraph, " ")) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

}  // namespace

std::string plain(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c != '`' && c != '<' && c != '>') out += c;
  }
  return out;
}

std::string roff_literal(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";  // else a request
    line_begins = c == '\n';
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

std::string roff(std::string_view text) {
  std::string out;
  bool bold = false;
  for (char c : roff_literal(text)) {
    if (c == '`') {
      bold = !bold;
      out += bold ? "\\fB" : "\\fP";
    } else if (c == '<') {
      out += "\\fI";
    } else if (c == '>') {
      out += "\\fP";
    } else {
      out += c;
    }
  }
  return out;
}

std::string filled(std::string_view text, size_t indent) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("\n\n", at), text.size());
    if (at > 0) out += "\n";
    fill_paragraph(out, text.substr(at, end - at), indent);
    at = end + 2;
  }
  return out;
}

}  // namespace rocefs
