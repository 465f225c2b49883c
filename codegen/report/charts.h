#pragma once
// Pictures of the report: plain SVG, 1000 units wide, of which the page's style sheet chooses the colours.
// Every shape that stands for something says what in its <title>.

#include <cstdint>
#include <string>
#include <vector>

namespace gcompile {

/// Text of the model as content of SVG; of a long one begin and end.
std::string svg_text(const std::string& text);

/// Something that takes room: a name that may be drawn into it, what is said of it, and how much.
struct Tile {
  std::string name, text;
  std::int64_t size = 0;
};

/// Tiles with areas in the proportion of their sizes (Bruls, Huizing and van Wijk, "Squarified treemaps",
/// 2000), the largest first. What is too small to be seen is one tile, "40 others".
std::string tile_map_svg(const std::string& label, std::vector<Tile> tiles);

/// Something that happens at one place of a sequence, and takes time.
struct Bar {
  std::string text;
  double microseconds = 0;
  double other = 0;  // of the same, drawn as a line across the bar; 0: not known
};

/// Bars from left to right. `legend` says what bars and lines are.
std::string bars_svg(const std::string& label, const std::string& legend, const std::vector<Bar>& bars);

/// "1.50 ms", "12.3 us".
std::string human_time(double microseconds);

}  // namespace gcompile
