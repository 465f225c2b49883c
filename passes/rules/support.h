#pragma once
// What the tables of rules share: questions about constants, axes and readers.

#include <optional>
#include <vector>

#include "passes/engine/rule.h"

namespace gcompile::passes {

/// Elements of `tensor` along `axis` of `shape`, one per position, when it broadcasts to the shape without
/// enlarging it and varies along that axis alone.
std::optional<std::vector<double>> along_axis(const ir::Tensor& tensor, const ir::Shape& shape, int axis);
/// Every element equals the number (-0 equals 0).
bool all_equal(const ir::Tensor& tensor, double number);
bool all_finite(const std::vector<double>& values);
bool all_finite(const ir::Tensor& tensor);
/// Whether no run makes the value negative, -0 included; NaN it may be.
bool is_never_negative(const ir::Graph& graph, ir::ValueId value);
/// Each element with the other sign; integers wrap.
ir::Tensor negated(const ir::Tensor& tensor);
/// Whether an addend is so small that the largest number swallows it: where what it is added to leaves the range,
/// so does the sum.
bool is_small_addend(const ir::Tensor& tensor);
/// Shape and element type of the value bound to `name` are those of the result.
bool keeps_type(const Match& match, std::string_view name);
/// The guard of rules whose law is "the operand itself".
std::string unless_type_is_kept(const Match& match);

/// Whether an integer, a comparison or a rounding is decided by this value with no contraction or reduction
/// in between (DESIGN law 6): a last bit more or less would flip it. Data movement and element-wise
/// arithmetic are followed for at most 64 nodes; beyond that the answer is yes.
bool feeds_integer_decision(const ir::Graph& graph, ir::ValueId value);
/// The guard of rules that reassociate element-wise arithmetic.
std::string unless_decisions_stay(const Match& match);

/// Elements of an int64 constant.
std::vector<std::int64_t> ints_of(const Match& match, std::string_view name);
/// Element of `tensor` that position `i` of `shape`, to which it broadcasts, is read from.
std::int64_t position_under(const ir::Shape& tensor, const ir::Shape& shape, std::int64_t i);

/// The value, as it is or through a Reshape, whose zeros are sizes.
ir::ValueId reshaped(Rewriter& rewriter, ir::ValueId value, const ir::Shape& shape);

/// A Slice by constants "starts", "ends", "axes" and "steps", all with the suffix "1" or "2" where there is one.
Pattern slice_of(Pattern from, std::string_view bound, std::string_view suffix = {});

/// Start and step of every axis of a Slice.
struct Strided {
  std::vector<std::int64_t> start, step;
};
/// Nothing where it reverses an axis, or where it is not known.
std::optional<Strided> strided(const ir::Graph& graph, const ir::Node& slice);
/// `counts` elements of every axis of the value; the value itself where these are all.
ir::ValueId emit_slice(Rewriter& rewriter, ir::ValueId value, const Strided& slice, const ir::Shape& counts);

/// Axes in [0, rank), in the given order.
std::vector<std::int64_t> normalised(std::vector<std::int64_t> axes, int rank);

/// The attribute "axis" of what has so many axes, counted from the first.
std::size_t axis_of(const ir::Attributes& attributes, int rank);

/// A tensor of floats whose elements are computed in double and rounded once.
template <class Element>
ir::Tensor computed(const ir::TensorType& type, Element element) {
  ir::Tensor out(type);
  for (std::int64_t i = 0; i < out.count(); ++i) out.set(i, ir::Scalar::of_real(type.element, element(i)));
  return out;
}

// Products and sums of weights, computed in double and rounded once.

/// Whether the compiler has the time for a product of (rows, depth) and (depth, columns).
bool is_affordable(std::int64_t rows, std::int64_t depth, std::int64_t columns);
/// The product of two matrices.
ir::Tensor product_of(const ir::Tensor& a, const ir::Tensor& b);
/// Whether the product can stand for its factors: it is finite, and the largest weight of each column is a
/// normal number (DESIGN law 5), unless b has zeros alone there.
bool keeps_columns(const ir::Tensor& product, const ir::Tensor& a, const ir::Tensor& b);
/// The sum of two tensors of one type.
ir::Tensor sum_of(const ir::Tensor& a, const ir::Tensor& b);

/// The constant bound to `name` as one value for each element of the last axis of the value bound to `of`.
std::optional<std::vector<double>> column_bias(const Match& match, std::string_view name,
                                               std::string_view of);
/// A row times a matrix.
ir::Tensor row_times(const std::vector<double>& row, const ir::Tensor& matrix);

}  // namespace gcompile::passes
