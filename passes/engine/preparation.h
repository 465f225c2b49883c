#pragma once
// What changes a model's arithmetic, before all passes of the pipeline: the graph that is prepared is the
// oracle's as well, so that it judges kernels and not what is decided here.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

/// Which 16-bit floats are computed in float32.
enum class Widened : std::uint8_t {
  kNone,
  kSquares,  // sums of squares and what they divide
  kAll,      // every value that only nodes of the model read
};

struct PreparationOptions {
  int weight_bits = 0;  // the weights of products are packed in so many, 4 or 8; 0: they stay as they are
  bool rounds_rows = false;  // what products multiply by packed weights, where the model allows it
  const ir::KernelPrices* prices = nullptr;  // by which rows are rounded
  Widened widened = Widened::kNone;
};

/// What was done to a model.
struct Prepared {
  Report report;
  std::vector<ir::PackedWeight> packed_weights;
  std::int64_t rounded_products = 0;
  std::int64_t widened_values = 0;  // that are no longer rounded
};

struct Preparation {
  std::string name;
  std::string summary;
  /// Whether the options ask for it, and the model has something to do it to.
  bool (*is_wanted)(const ir::Graph&, const PreparationOptions&);
  /// What it looks for shows when composite operators are taken apart and constants folded: the passes of the
  /// pipeline that are marked so run first.
  bool takes_apart;
  void (*run)(ir::Graph&, const PreparationOptions&, Prepared&);
};

/// The table of preparations, in order; it stands beside the pipeline's.
const std::vector<Preparation>& preparation();

/// Does to the graph, and to every subgraph, what is wanted.
Prepared prepare(ir::Graph& graph, const PreparationOptions& options);

}  // namespace gcompile::passes
