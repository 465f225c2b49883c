// Loop and Scan: the importer makes nodes of their trips (frontend/import/import_loop.cc), so that no graph has them.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext&) { operator_error("its trips become nodes where a model is imported"); }

}  // namespace

const Operator& operator_Loop() {
  static const Operator op = {
      .name = "Loop",
      .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
      .operands = {2, -1},
      .results = {1, -1},
      .summary = "trips of a graph that carry values, as long as a condition holds",
      .infer = infer,
  };
  return op;
}

const Operator& operator_Scan() {
  static const Operator op = {
      .name = "Scan",
      .versions = {8, 9, 11, 16, 19, 21, 23, 24, 25},
      .operands = {1, -1},
      .results = {1, -1},
      .attributes = {{"directions", AttributeKind::kInts, std::nullopt},
                     {"num_scan_inputs", AttributeKind::kInt, std::nullopt, true},
                     {"scan_input_axes", AttributeKind::kInts, std::nullopt},
                     {"scan_input_directions", AttributeKind::kInts, std::nullopt},
                     {"scan_output_axes", AttributeKind::kInts, std::nullopt},
                     {"scan_output_directions", AttributeKind::kInts, std::nullopt}},
      .summary = "trips of a graph that carry values, one for each position of sequences",
      .infer = infer,
  };
  return op;
}

}  // namespace gcompile::ir
