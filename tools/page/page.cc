#include "tools/page/page.h"

#include <algorithm>

// The files as they are, from the directory in which `make` runs.
#define ROCEFS_PAGE(name, file)               \
  __asm__(                                    \
      ".section .rodata\n"                    \
      ".global rocefs_page_" #name            \
      "\n"                                    \
      "rocefs_page_" #name                    \
      ":\n"                                   \
      ".incbin \"tools/page/" file            \
      "\"\n"                                  \
      ".global rocefs_page_" #name            \
      "_end\n"                                \
      "rocefs_page_" #name                    \
      "_end:\n"                               \
      ".byte 0\n"                             \
      ".text\n");                             \
  extern "C" const char rocefs_page_##name[]; \
  extern "C" const char rocefs_page_##name##_end[]

ROCEFS_PAGE(index, "index.html");
ROCEFS_PAGE(style, "style.css");
ROCEFS_PAGE(app, "app.js");
ROCEFS_PAGE(charts, "charts.js");
ROCEFS_PAGE(drawing, "drawing.css");
ROCEFS_PAGE(figure, "figure.js");
ROCEFS_PAGE(layout, "layout.js");
ROCEFS_PAGE(map, "map.js");
ROCEFS_PAGE(model, "model.js");
ROCEFS_PAGE(panel, "panel.js");
ROCEFS_PAGE(player, "player.js");
ROCEFS_PAGE(plot, "plot.js");
ROCEFS_PAGE(recorded, "recorded.js");
ROCEFS_PAGE(report, "report.js");
ROCEFS_PAGE(report_style, "report.css");
ROCEFS_PAGE(tables, "tables.js");
ROCEFS_PAGE(text, "text.js");

namespace rocefs {

const PageFile* page_file(std::string_view path) {
  constexpr std::string_view kHtml = "text/html; charset=utf-8", kCss = "text/css; charset=utf-8",
                             kScript = "text/javascript; charset=utf-8";
  auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  static const PageFile kFiles[] = {
      {"/", kHtml, between(rocefs_page_index, rocefs_page_index_end)},
      {"/style.css", kCss, between(rocefs_page_style, rocefs_page_style_end)},
      {"/app.js", kScript, between(rocefs_page_app, rocefs_page_app_end)},
      {"/charts.js", kScript, between(rocefs_page_charts, rocefs_page_charts_end)},
      {"/drawing.css", kCss, between(rocefs_page_drawing, rocefs_page_drawing_end)},
      {"/figure.js", kScript, between(rocefs_page_figure, rocefs_page_figure_end)},
      {"/layout.js", kScript, between(rocefs_page_layout, rocefs_page_layout_end)},
      {"/map.js", kScript, between(rocefs_page_map, rocefs_page_map_end)},
      {"/model.js", kScript, between(rocefs_page_model, rocefs_page_model_end)},
      {"/panel.js", kScript, between(rocefs_page_panel, rocefs_page_panel_end)},
      {"/player.js", kScript, between(rocefs_page_player, rocefs_page_player_end)},
      {"/plot.js", kScript, between(rocefs_page_plot, rocefs_page_plot_end)},
      {"/recorded.js", kScript, between(rocefs_page_recorded, rocefs_page_recorded_end)},
      {"/report.js", kScript, between(rocefs_page_report, rocefs_page_report_end)},
      {"/report.css", kCss, between(rocefs_page_report_style, rocefs_page_report_style_end)},
      {"/tables.js", kScript, between(rocefs_page_tables, rocefs_page_tables_end)},
      {"/text.js", kScript, between(rocefs_page_text, rocefs_page_text_end)},
  };
  auto found = std::find_if(std::begin(kFiles), std::end(kFiles),
                            [&](const PageFile& file) { return file.path == path; });
  return found == std::end(kFiles) ? nullptr : found;
}

}  // namespace rocefs
