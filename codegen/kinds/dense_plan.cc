#include "codegen/kinds/dense_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/calls/call_writer.h"
#include "codegen/calls/hand_over.h"
#include "codegen/packing/packing.h"

namespace gcompile {
namespace {

enum Field : std::size_t { kItemRows, kItemColumns, kBlockRows, kDepth, kFirstTile, kInTiles = kFirstTile };
constexpr std::size_t kTileFields = 2;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

std::int64_t tile_columns(const Level& level, TileShape tile) {
  return tile.vectors * std::max(1, level.vector_bytes / 4);
}

/// Quarters of a clock for one step of k of a tile: its multiply-adds, its loads, or the latency of few sums,
/// of which a tile keeps several for each element (gcrt/cpu/product/tile.h, tile_phases).
std::int64_t step_cost(std::int64_t rows, std::int64_t vectors, const Machine& machine) {
  const std::int64_t sums = rows * vectors;
  const std::int64_t phases = sums >= 8 ? 1 : sums >= 4 ? 2 : 4;
  return std::max({4 * sums / machine.fma_per_clock, 4 * (rows + vectors) / machine.loads_per_clock,
                   4 * machine.fma_latency / phases});
}

constexpr std::int64_t kVisit = 16'000;  // picoseconds that a tile takes beyond its steps

/// What all tiles cost, in quarters of a clock.
std::int64_t tiles_cost(const DenseWork& work, const Level& level, TileShape tile, const Machine& machine) {
  const std::int64_t vectors = ceil_div(work.columns, std::max(1, level.vector_bytes / 4));
  const std::int64_t rows_left = work.rows % tile.rows, vectors_left = vectors % tile.vectors;
  const auto line = [&](std::int64_t rows) {
    return vectors / tile.vectors * step_cost(rows, tile.vectors, machine) +
           (vectors_left ? step_cost(rows, vectors_left, machine) : 0);
  };
  const std::int64_t visits = ceil_div(work.rows, tile.rows) * ceil_div(vectors, tile.vectors);
  const std::int64_t steps = work.rows / tile.rows * line(tile.rows) + (rows_left ? line(rows_left) : 0);
  return work.depth * steps + static_cast<std::int64_t>(4 * machine.gigahertz * kVisit / 1000) * visits;
}

/// The usual tile, unless another one saves what its code is worth: some 40 KB with AVX-512.
TileShape choose_tile(const DenseWork& work, const Level& level, const Machine& machine) {
  constexpr std::int64_t kPercentOfCode = 3;
  TileShape best = level.tiles.front();
  std::int64_t limit = tiles_cost(work, level, best, machine) * (100 - kPercentOfCode) / 100;
  for (const TileShape& tile : level.tiles.subspan(1)) {
    const std::int64_t cost = tiles_cost(work, level, tile, machine);
    if (cost >= limit) continue;
    best = tile;
    limit = cost;
  }
  return best;
}

/// Rows of a register of the tile unit, and bytes of one.
constexpr std::int64_t kUnitRows = 16, kUnitRowBytes = 64;

/// Whether products of bytes are faster in the tile unit: its registers are filled to a half by runs of k,
/// and by one part of the rows.
bool pays_in_tiles(const DenseWork& work) {
  return work.rows >= kUnitRows && work.run_bytes >= kUnitRowBytes / 2;
}

/// The share of the time that as many multiply-adds by FMA take: products of bfloat16, and the splitting of
/// both sides, which a task of so many rows and columns does once for each of
/// its values (gcrt/cpu/product/dot_bfloat16.h).
double bfloat16_time(const DenseWork& work, int products) {
  constexpr double kTaskRows = 128, kTaskColumns = 64;
  // In multiply-adds: instructions for 32 values, two of which take as long as 32 multiply-adds.
  const double split = products == 1 ? 9 : products == 3 ? 16 : 26;
  const double rows = std::min(kTaskRows, static_cast<double>(work.rows));
  const double columns = std::min(kTaskColumns, static_cast<double>(work.columns));
  return products / (kTileUnitRate / 2) + split * (1 / rows + 1 / columns);
}

/// Rows and depth of a block, whose rows wait in a cache for one tile of columns after the other.
struct DenseBlock {
  std::int64_t rows, depth;
};

/// Picoseconds beyond the multiply-adds.
std::int64_t block_cost(const DenseWork& work, const Machine& machine, TileShape tile, std::int64_t columns,
                        DenseBlock block) {
  constexpr std::int64_t kTap = 4'000;  // to find the rows of one tap of a tile
  const std::int64_t blocks = ceil_div(work.rows, block.rows), parts = ceil_div(work.depth, block.depth);
  const std::int64_t row_tiles = ceil_div(work.rows, tile.rows),
                     column_tiles = ceil_div(work.columns, columns);
  const std::int64_t left = work.left_bytes / blocks / parts;
  const std::int64_t panel = columns * block.depth * 4;
  const std::int64_t sums = work.rows * work.columns * 4;
  const std::int64_t finds = row_tiles * (block.rows <= tile.rows ? 1 : column_tiles);
  return machine.stall(left + panel, work.left_bytes * column_tiles) +
         machine.stall(panel + left / ceil_div(block.rows, tile.rows), work.right_bytes * row_tiles) +
         machine.stall(work.right_bytes + left, work.right_bytes * (blocks - 1)) +
         machine.stall(sums, 2 * sums * (parts - 1)) + kVisit * row_tiles * column_tiles * parts +
         kTap * work.taps * finds;
}

DenseBlock choose_block(const DenseWork& work, const Machine& machine, TileShape tile, std::int64_t columns) {
  DenseBlock best{work.rows, work.depth};
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  // A single row has a kernel of its own, that knows no parts.
  const bool may_cut_depth = work.may_cut_depth && work.rows > 1;
  for (std::int64_t parts = 1; parts <= (may_cut_depth ? 16 : 1); ++parts) {
    const std::int64_t depth = parts == 1 ? work.depth : round_up(ceil_div(work.depth, parts), kPanelColumns);
    for (std::int64_t blocks = 1; blocks <= work.rows; blocks *= 2) {
      const DenseBlock block{round_up(ceil_div(work.rows, blocks), tile.rows), depth};
      const std::int64_t cost = block_cost(work, machine, tile, columns, block);
      if (cost < least) {
        least = cost;
        best = block;
      }
      if (block.rows == tile.rows) break;
    }
  }
  return best;
}

/// Rows and columns of a work item.
struct DenseItem {
  std::int64_t rows, columns;
};

/// Rows of which all groups read their share before the next ones: where rows of all groups lie side by side,
/// one line of memory holds channels of several, and what one group has fetched would be gone before the next
/// one comes. Weights that would leave no room for them pass once, over all rows.
std::int64_t rows_of_groups(const DenseWork& work, const Machine& machine, TileShape tile) {
  constexpr std::int64_t kFewestTiles = 4;
  const std::int64_t room = machine.l2 / 2;
  const std::int64_t bytes = (work.left_bytes + work.rows * work.columns * 4) * work.groups;
  if (!work.is_interleaved || bytes <= room || work.right_bytes * work.groups > room) return work.rows;
  const std::int64_t tiles = std::max(kFewestTiles, work.rows * room / bytes / tile.rows);
  return std::min(work.rows, tiles * tile.rows);
}

/// One item where a second thread is not worth it, else so many that all threads end at about the same time:
/// up to four for each core, none so small that to find its tiles takes long. Along the rows if these are
/// more bytes than the right side, which each item then reads whole, else along the columns; along both where
/// one has too few tiles.
DenseItem choose_item(const DenseWork& work, const Machine& machine, TileShape tile) {
  constexpr std::int64_t kSmallest = 500'000;  // picoseconds
  const std::int64_t total =
      machine.picoseconds(work.rows * work.columns * work.depth, work.right_bytes) * work.groups;
  const std::int64_t activations = (work.left_bytes + work.rows * work.columns * 4) * work.groups;
  const std::int64_t items = machine.is_short(total + hand_over(activations))
                                 ? 1
                                 : std::clamp<std::int64_t>(total / kSmallest, 2, 4 * machine.cores);
  const std::int64_t wanted = ceil_div(items, work.groups);
  DenseItem item{rows_of_groups(work, machine, tile), work.columns};
  if (wanted <= 1) return item;
  const auto cut = [&](std::int64_t size, std::int64_t pieces, std::int64_t unit) {
    return round_up(ceil_div(size, std::max<std::int64_t>(1, pieces)), unit);
  };
  if (work.left_bytes > work.right_bytes) {
    item.rows = std::min(item.rows, cut(work.rows, wanted, tile.rows));
    item.columns = cut(work.columns, wanted / ceil_div(work.rows, item.rows), kPanelColumns);
  } else {
    item.columns = cut(work.columns, wanted, kPanelColumns);
    item.rows = std::min(item.rows, cut(work.rows, wanted / ceil_div(work.columns, item.columns), tile.rows));
  }
  return item;
}

}  // namespace

std::span<const char* const> dense_fields() {
  static constexpr const char* kFields[] = {"item rows", "item columns", "block rows", "depth",
                                            "tile rows", "vectors",      "tile rows",  "vectors",
                                            "tile rows", "vectors",      "tile rows",  "vectors"};
  return kFields;
}

std::span<const char* const> integer_fields() {
  static constexpr const char* kFields[] = {"item rows", "item columns", "block rows", "depth", "in tiles"};
  return kFields;
}

DenseWork dense_work(const Product& product, std::int64_t element_bytes) {
  DenseWork work;
  work.rows = product.axes.row_count;
  work.columns = product.columns;
  work.depth = product.depth;
  work.left_bytes = work.rows * work.depth * element_bytes;
  work.right_bytes = round_up(work.columns, kPanelColumns) * work.depth * element_bytes;
  return work;
}

KernelPlan dense_plan(DenseWork work, const Machine& machine) {
  for (std::int64_t* size : {&work.rows, &work.columns, &work.depth})
    *size = std::max<std::int64_t>(1, *size);
  const TileShape usual = choose_tile(work, machine.level, machine);
  const DenseItem item = choose_item(work, machine, usual);
  const DenseBlock block = choose_block(work, machine, usual, tile_columns(machine.level, usual));
  const auto unless_all = [](std::int64_t size, std::int64_t all) { return size < all ? size : 0; };
  KernelPlan plan{{unless_all(item.rows, work.rows), unless_all(item.columns, work.columns),
                   unless_all(block.rows, work.rows), unless_all(block.depth, work.depth)}};
  // One tile, whatever its rows are on a level: fewer are rounded up.
  if (block.rows < work.rows && block.rows <= usual.rows) plan.fields[kBlockRows] = 1;
  for (const Level& level : machine.levels) {
    if (!work.has_tile) break;
    const TileShape tile = choose_tile(work, level, machine);
    plan.fields.insert(plan.fields.end(), {tile.rows, tile.vectors});
  }
  if (machine.has_tile_unit && pays_in_tiles(work)) plan.fields.push_back(1);
  return plan;
}

std::string dense_tile(const KernelPlan& plan, int bfloat16_products) {
  std::vector<std::string> tiles;
  for (std::size_t at = kFirstTile; at + kTileFields <= plan.fields.size(); at += kTileFields) {
    tiles.push_back(fmt::format("RegisterTile<{}, {}>", plan.fields[at], plan.fields[at + 1]));
  }
  if (tiles.empty()) return "";
  // Those that gcrt/cpu/product/dot.h has names for.
  const std::string all = fmt::format("{}", fmt::join(tiles, ", "));
  const std::string shared = "RegisterTile<4, 2>, RegisterTile<8, 2>, RegisterTile<6, 2>, ";
  const std::string tile = all == shared + "RegisterTile<8, 3>"   ? "UsualTile"
                           : all == shared + "RegisterTile<6, 4>" ? "WideTile"
                           : tiles.size() > 1                     ? "TileOfLevel<" + all + ">"
                                                                  : all;
  return bfloat16_products > 0 ? fmt::format("InBfloat16<{}, {}>", bfloat16_products, tile) : tile;
}

void write_blocking(const KernelPlan& plan, CodeText& code) {
  code.line(fmt::format("constexpr Blocking blocking{{/*item*/ {}, {}, /*block*/ {}, /*depth*/ {}}};",
                        plan.fields[kItemRows], plan.fields[kItemColumns], plan.fields[kBlockRows],
                        plan.fields[kDepth]));
}

KernelPlan without_cuts_of_depth(KernelPlan plan) {
  plan.fields[kDepth] = 0;
  return plan;
}

bool cuts_depth(const KernelPlan& plan) { return plan.fields[kDepth] > 0; }

bool is_in_tiles(const KernelPlan& plan) { return plan.fields.size() == kInTiles + 1; }

double byte_rate(const DenseWork& work, const KernelPlan& plan, const Machine& machine) {
  if (!is_in_tiles(plan) || machine.level.tile_unit_rate == 0) return machine.level.byte_rate;
  // A step takes as long whatever its words and columns.
  const auto share = [](std::int64_t size, std::int64_t unit) {
    return static_cast<double>(size) / static_cast<double>(round_up(size, unit));
  };
  return machine.level.tile_unit_rate * share(work.run_bytes, kUnitRowBytes) *
         share(work.columns, kPanelColumns);
}

int bfloat16_products(const DenseWork& work, const Machine& machine) {
  const int products = facts_of(machine.precision).bfloat16_products;
  if (products <= 0 || !machine.has_tile_unit || !work.has_tile || work.depth < kUnitRowBytes / 2) return 0;
  // Six are never faster; who asks for them gets them where three are.
  return bfloat16_time(work, std::min(products, 3)) < 1 ? products : 0;
}

int in_bfloat16(const DenseWork& work, CallWriter& writer) {
  const int products = bfloat16_products(work, writer.machine());
  if (products > 0) {
    writer.call().headers.push_back("gcrt/cpu/product/dot_bfloat16.h");
    writer.call().in_tiles = true;
  }
  return products;
}

double float_rate(const DenseWork& work, const Machine& machine) {
  const int products = bfloat16_products(work, machine);
  return products > 0 && machine.level.tile_unit_rate > 0 ? 1 / bfloat16_time(work, products) : 1;
}

const char* in_tiles(const KernelPlan& plan, bool narrow, CallWriter& writer) {
  if (!is_in_tiles(plan) || !narrow) return "";
  writer.call().in_tiles = true;
  return "<kInTiles>";
}

std::int64_t parked_bytes(const DenseWork& work, const KernelPlan& plan) {
  return cuts_depth(plan) ? (work.rows + 1) * round_up(work.columns, kPanelColumns) * 4 : 0;
}

}  // namespace gcompile
