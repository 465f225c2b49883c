#pragma once
// The iteration space of one region of a LoopForm over placed operands: splits axes so that constant
// divisions disappear, merges axes that every operand walks as one, and chooses the vector axis (DESIGN laws
// 1 and 2).

#include <optional>
#include <string>
#include <vector>

#include "ir/forms/form.h"
#include "ir/loops/number_facts.h"

namespace gcompile {

/// A tensor as a kernel sees it: a typed pointer and element strides per logical axis.
struct KernelTensor {
  std::string pointer;  // parameter name
  ir::ElementType element = ir::ElementType::kFloat32;
  ir::Shape strides;
  std::int64_t alignment = 1;                  // bytes, a power of two: of the pointer, proven
  std::optional<double> bound = std::nullopt;  // of the magnitude of floats, where they are known and finite
  bool is_weight = false;                      // no kernel writes it
};

/// What is known of the values of a dag that loads these operands.
std::vector<ir::NumberFacts> number_facts(const ir::Dag& dag, const std::vector<KernelTensor>& operands);

/// How large a step is, as far as that is known where only a run knows it: no formula is a unit stride.
std::int64_t magnitude(ir::Dim step);

/// The axis of the rows of an image (N, C, H, W).
constexpr int kRowsOfImage = 2;

struct NestAxis {
  ir::Range range;
  bool reduced = false;
  bool dead = false;  // split away, merged away or of extent one
  ir::Dim extent() const { return range.high - range.low; }
};

/// Addresses of the dag's loads are element positions from the operand's pointer; iotas keep their value.
struct LoopNest {
  const ir::LoopForm* form = nullptr;
  std::vector<NestAxis> axes;
  std::vector<ir::Index> address;  // per dag node: loads and iotas
  ir::Index store;
  std::vector<int> nodes;     // dag nodes of this region and of the stages, ascending
  std::vector<int> parallel;  // loop order, outermost first
  std::vector<int> reduced;
  int vector_axis = -1;  // -1: nothing to vectorise (no axis of extent > 1)
  /// An axis that stays as it is, the outermost, because the caller says how much of it to walk; -1: none.
  int rows = -1;

  std::vector<ir::Range> ranges() const;
  /// Bit i: the node's value changes along axis i. Accumulator(k) depends on bit 32 + k.
  std::vector<std::uint64_t> dependence() const;
};

/// `stage_roots` false: only the region (maps). The region's box restricts the final axes. `rows`: see LoopNest.
LoopNest build_nest(const ir::LoopForm& form, const ir::Region& region,
                    const std::vector<KernelTensor>& operands, const KernelTensor& result, int rows = -1);

/// Packs run along this live axis, whose loop becomes the innermost of its kind.
void set_vector_axis(LoopNest& nest, int axis);

}  // namespace gcompile
