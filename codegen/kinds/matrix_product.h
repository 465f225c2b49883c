#pragma once
// How the axes of a matrix product's operands and result fall to rows, columns and batch entries.

#include <vector>

#include "codegen/choice/family.h"
#include "codegen/loops/code_text.h"
#include "codegen/loops/size_parameters.h"

namespace gcompile {

/// Element strides of the sides of a product A (..., M, K) times B (..., K, N) along an axis of its result
/// (..., M, N); 0 where a side broadcasts, along N of A, and along M of B, whose own axis at that place is K.
ir::Dim left_stride(std::size_t rank, const ir::Shape& a, const ir::Shape& strides, std::size_t axis);
ir::Dim right_stride(std::size_t rank, const ir::Shape& b, const ir::Shape& strides, std::size_t axis);

struct ProductAxes {
  std::vector<int> rows;  // result axes that the rows count, outermost first; in any order
  ir::Dim row_count = 0;
  ir::Dim row_stride = 0;  // elements of the left side
  // Result axes that count batch entries, outermost first: M among them where other axes are more rows.
  std::vector<std::size_t> batch;
};

/// Batch axes with a shared right side are rows as those of the matrix are: of all of them, the most that lie
/// one after the other in the left side are the rows of one larger matrix, whatever their order in the result
/// (nn.MultiheadAttention multiplies a transposed (sequence, batch, features) view). Axes of extent one are
/// neither rows nor batch.
ProductAxes product_axes(const ir::Shape& result, const ir::Shape& a, const ir::Shape& a_strides,
                         const ir::Shape& b);

/// Sizes and axes of a product A (..., M, K) times B (..., K, N).
struct Product {
  const ir::Shape& a;
  const ir::Shape& b;
  const ir::Shape& out;
  ir::Shape a_strides;
  ir::Dim depth, columns;
  ProductAxes axes;

  explicit Product(const ir::Problem& problem);
  std::size_t rank() const { return out.size(); }
  ir::Dim along_a(std::size_t axis) const { return left_stride(rank(), a, a_strides, axis); }
  ir::Dim along_b(const ir::Shape& strides, std::size_t axis) const {
    return right_stride(rank(), b, strides, axis);
  }
  /// Strides of a constant B of which every matrix takes `matrix` elements when packed.
  ir::Shape packed_strides(ir::Dim matrix) const;
  /// Matrices of B.
  std::int64_t matrices() const;
};

/// Loops b<axis> over the entries of the batch.
struct BatchLoops {
  int loops = 0;  // that were opened
  std::string a;  // the left matrix of an entry
};
BatchLoops open_batch_loops(const Product& product, CodeText& code, SizeParameters& sizes);
/// "b + 64 * b0": the right matrix there, of these strides.
std::string batch_entry_of_b(const Product& product, const ir::Shape& strides, SizeParameters& sizes);

/// Rows of A must be dense; B is packed from any strides.
NeededOrder needs_dense_rows(const ir::Problem& problem, std::size_t i);

/// Constants have numbers; of what is computed every size may be a formula,
/// where rows of A are dense as they lie.
bool takes_dense_formulas(const ir::Problem& problem);

/// Weights that are decoded as they are multiplied have families of their own.
Refusal refuse_packed_weights(const ir::Problem& problem);

}  // namespace gcompile
