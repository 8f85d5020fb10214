// Style and script of the HTML report.
#pragma once

namespace rocefs {

extern const char* const kReportStyle;
// Draws the data in the element `data`, JSON that html_report.cc writes, into the elements
// `flows` and `series`.
extern const char* const kReportScript;

}  // namespace rocefs
