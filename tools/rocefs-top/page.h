// Page: what a terminal shows, as text with styles. Texts are printable.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/rocefs-top/printable.h"

namespace rocefs::top {

enum class Style : unsigned char {
  kPlain,
  kQuiet,
  kStrong,
  kGood,
  kNotable,
  kBad,
  kTitle,     // headings of the table
  kSorted,    // heading of the column that it is sorted by
  kSelected,  // the row under the cursor
  kTab,
  kChosenTab,
  kBar,
  kKey,
  kLabel,
  kPrompt,
};

struct Span {
  std::string text;
  Style style = Style::kPlain;
};

// A line, which grows from the left.
class Line {
 public:
  Line& add(std::string text, Style style = Style::kPlain) {
    width_ += width_of(text);
    if (!text.empty()) spans_.push_back({std::move(text), style});
    return *this;
  }
  // Blanks up to a column; nothing where the line is longer.
  Line& to(size_t column, Style style = Style::kPlain) {
    if (column > width_) add(std::string(column - width_, ' '), style);
    return *this;
  }
  size_t width() const { return width_; }
  const std::vector<Span>& spans() const { return spans_; }
  // Without styles.
  std::string text() const {
    std::string all;
    for (const Span& span : spans_) all += span.text;
    return all;
  }

 private:
  std::vector<Span> spans_;
  size_t width_ = 0;
};

struct Page {
  std::vector<Line> lines;
  std::optional<size_t> cursor;  // column in the last line where somebody types
};

}  // namespace rocefs::top
