// Sequences and optionals: the importer keeps them as lists of values (frontend/import/import_sequence.cc), so that no
// graph has these operators.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext&) { operator_error("its sequence becomes values where a model is imported"); }

}  // namespace

const Operator& operator_ConcatFromSequence() {
  static const Operator op = {
      .name = "ConcatFromSequence",
      .versions = {11},
      .attributes = {{"axis", AttributeKind::kInt, std::nullopt, true},
                     {"new_axis", AttributeKind::kInt, std::int64_t{0}}},
      .summary = "the elements of a sequence one after another along an axis, or along a new one",
      .infer = infer,
  };
  return op;
}

const Operator& operator_Optional() {
  static const Operator op = {
      .name = "Optional",
      .versions = {15},
      .operands = {0, 1},
      .summary = "an optional with an element, or without one",
      .infer = infer,
  };
  return op;
}

const Operator& operator_OptionalGetElement() {
  static const Operator op = {
      .name = "OptionalGetElement",
      .versions = {15, 18},
      .summary = "the element of an optional",
      .infer = infer,
  };
  return op;
}

const Operator& operator_OptionalHasElement() {
  static const Operator op = {
      .name = "OptionalHasElement",
      .versions = {15, 18},
      .operands = {0, 1},
      .summary = "whether an optional has an element",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceAt() {
  static const Operator op = {
      .name = "SequenceAt",
      .versions = {11},
      .operands = {2, 2},
      .summary = "the element of a sequence at a position",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceConstruct() {
  static const Operator op = {
      .name = "SequenceConstruct",
      .versions = {11},
      .operands = {1, -1},
      .summary = "a sequence of the operands",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceEmpty() {
  static const Operator op = {
      .name = "SequenceEmpty",
      .versions = {11},
      .operands = {0, 0},
      .attributes = {{"dtype", AttributeKind::kInt, std::int64_t{1}}},
      .summary = "a sequence without elements",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceErase() {
  static const Operator op = {
      .name = "SequenceErase",
      .versions = {11},
      .operands = {1, 2},
      .summary = "a sequence without its element at a position, or without the last one",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceInsert() {
  static const Operator op = {
      .name = "SequenceInsert",
      .versions = {11},
      .operands = {2, 3},
      .summary = "a sequence with one more element, at a position or behind the others",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceLength() {
  static const Operator op = {
      .name = "SequenceLength",
      .versions = {11},
      .summary = "how many elements a sequence has",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SequenceMap() {
  static const Operator op = {
      .name = "SequenceMap",
      .versions = {17},
      .operands = {1, -1},
      .results = {1, -1},
      .summary = "a graph for each element of a sequence",
      .infer = infer,
  };
  return op;
}

const Operator& operator_SplitToSequence() {
  static const Operator op = {
      .name = "SplitToSequence",
      .versions = {11, 24},
      .operands = {1, 2},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{0}},
                     {"keepdims", AttributeKind::kInt, std::int64_t{1}}},
      .summary = "a sequence of parts of a tensor along an axis",
      .infer = infer,
  };
  return op;
}

}  // namespace gcompile::ir
