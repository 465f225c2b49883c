#include "codegen/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/diagnostics.h"
#include "codegen/report/quantities.h"

namespace gcompile {
namespace {

constexpr double kWidth = 1000;
constexpr double kTilesHeight = 260;
constexpr double kBarsHeight = 220;
constexpr double kLeft = 84;
constexpr double kTop = 26;
constexpr double kBottom = 30;
constexpr double kCharacter = 7;  // of text of 12 units, on average

struct Box {
  double x, y, width, height;
};

std::string svg_begin(const std::string& label, double height) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"group\" aria-label=\"{}\">\n", kWidth, height,
                     svg_text(label));
}

/// The middle becomes two dots.
std::string shortened(const std::string& text, std::size_t length) {
  if (text.size() <= length) return text;
  if (length < 4) return "";
  const std::size_t front = (length - 1) / 2;
  return text.substr(0, front) + ".." + text.substr(text.size() - (length - 2 - front));
}

void draw_tile(const Tile& tile, const Box& box, std::string& svg) {
  auto out = std::back_inserter(svg);
  fmt::format_to(out,
                 "<g><rect class=\"tile\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">"
                 "<title>{}\n{}</title></rect>",
                 box.x, box.y, box.width, box.height, svg_text(tile.name), svg_text(tile.text));
  // Whether there is a text must not depend on the names: elements are the same for all.
  if (box.width > 60 && box.height > 20) {
    const auto fits = static_cast<std::size_t>((box.width - 10) / kCharacter);
    fmt::format_to(out, "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", box.x + 5, box.y + 15,
                   svg_text(shortened(printable(tile.name), fits)));
  }
  svg += "</g>\n";
}

/// How far the worst tile of a row is from a square: `row` bytes of which the least and the most are given,
/// along a side, with an area for a byte.
double worst_ratio(double row, double least, double most, double side, double area) {
  const double squared = row * row * area;
  return std::max(side * side * most / squared, squared / (side * side * least));
}

/// Fills the box with tiles, largest first.
void squarify(const std::vector<Tile>& tiles, Box box, std::string& svg) {
  double rest = 0;
  for (const Tile& tile : tiles) rest += static_cast<double>(tile.size);
  for (std::size_t first = 0; first < tiles.size();) {
    const double area = box.width * box.height / rest;
    const double side = std::min(box.width, box.height);
    double row = 0, worst = 0;
    std::size_t last = first;
    for (; last < tiles.size(); ++last) {
      const auto size = static_cast<double>(tiles[last].size);
      const double ratio = worst_ratio(row + size, size, static_cast<double>(tiles[first].size), side, area);
      if (last > first && ratio > worst) break;
      worst = ratio;
      row += size;
    }
    const bool is_column = box.width >= box.height;
    const double depth = row * area / side;
    double along = is_column ? box.y : box.x;
    for (; first < last; ++first) {
      const double length = static_cast<double>(tiles[first].size) / row * side;
      draw_tile(tiles[first], is_column ? Box{box.x, along, depth, length} : Box{along, box.y, length, depth},
                svg);
      along += length;
    }
    rest -= row;
    (is_column ? box.x : box.y) += depth;
    (is_column ? box.width : box.height) -= depth;
  }
}

/// 1, 2 or 5 times a power of ten, that cuts the range into at most five.
double tick_of(double range) {
  double power = std::pow(10.0, std::floor(std::log10(range / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (range / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string svg_text(const std::string& text) {
  constexpr std::size_t kLongest = 400;
  std::string shown = printable(text);
  if (shown.size() > kLongest) shown = shortened(shown, kLongest);
  std::string out;
  for (const char c : shown) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
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

std::string human_time(double microseconds) {
  if (microseconds >= 999.5) return fmt::format("{:.2f} ms", microseconds / 1000);
  return fmt::format("{:.3g} us", microseconds);
}

std::string tile_map_svg(const std::string& label, std::vector<Tile> tiles) {
  std::erase_if(tiles, [](const Tile& tile) { return tile.size <= 0; });
  std::stable_sort(tiles.begin(), tiles.end(), [](const Tile& a, const Tile& b) { return a.size > b.size; });
  std::int64_t total = 0;
  for (const Tile& tile : tiles) total += tile.size;
  // A tile of less than about 10 units by 10.
  constexpr double kLeast = 100 / (kWidth * kTilesHeight);
  const auto seen = static_cast<std::size_t>(std::count_if(tiles.begin(), tiles.end(), [&](const Tile& tile) {
    return static_cast<double>(tile.size) >= kLeast * static_cast<double>(total);
  }));
  if (tiles.size() - seen > 1) {
    Tile others{counted(static_cast<std::int64_t>(tiles.size() - seen), "other"), "", 0};
    for (std::size_t i = seen; i < tiles.size(); ++i) others.size += tiles[i].size;
    others.text = human_bytes(others.size) + " together";
    tiles.resize(seen);
    const auto place =
        std::find_if(tiles.begin(), tiles.end(), [&](const Tile& tile) { return tile.size < others.size; });
    tiles.insert(place, std::move(others));
  }
  std::string svg = svg_begin(label, kTilesHeight);
  squarify(tiles, {0, 0, kWidth, kTilesHeight}, svg);
  return svg + "</svg>\n";
}

std::string bars_svg(const std::string& label, const std::string& legend, const std::vector<Bar>& bars) {
  double most = 1e-3;
  for (const Bar& bar : bars) most = std::max({most, bar.microseconds, bar.other});
  const double height = kBarsHeight - kTop - kBottom;
  const double slot = (kWidth - kLeft) / static_cast<double>(std::max<std::size_t>(bars.size(), 1));
  const auto y = [&](double microseconds) { return kTop + height * (1 - microseconds / most); };
  std::string svg = svg_begin(label, kBarsHeight);
  auto out = std::back_inserter(svg);
  fmt::format_to(out, "<text x=\"{:.0f}\" y=\"14\">{}</text>\n", kLeft, svg_text(legend));
  const double tick = tick_of(most);
  for (int i = 0; i * tick <= most; ++i) {
    fmt::format_to(out, "<path class=\"axis\" d=\"M{:.0f} {:.2f}H{:.0f}\"/>", kLeft, y(i * tick), kWidth);
    fmt::format_to(out, "<text x=\"{:.0f}\" y=\"{:.2f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6,
                   y(i * tick) + 4, human_time(i * tick));
  }
  const std::size_t every = std::max<std::size_t>(1, (bars.size() + 9) / 10);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double x = kLeft + slot * static_cast<double>(i), width = std::max(slot * 0.8, 0.5);
    const double top = y(bars[i].microseconds);
    fmt::format_to(out,
                   "<rect class=\"bar\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\">"
                   "<title>{}</title></rect>\n",
                   x, top, width, std::max(kTop + height - top, 0.5), svg_text(bars[i].text));
    if (bars[i].other > 0) {
      fmt::format_to(out, "<path class=\"mark\" d=\"M{:.2f} {:.2f}h{:.2f}\"/>\n", x, y(bars[i].other), width);
    }
    if (i % every == 0) {
      fmt::format_to(out, "<text x=\"{:.2f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n", x + width / 2,
                     kBarsHeight - kBottom + 16, i);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace gcompile
