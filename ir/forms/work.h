#pragma once
// What a contraction or library kernel computes, beyond the types of its operands: the kinds that kernel
// families serve (DESIGN law 11). A form carries its Work;
// whoever makes kernels reads it, and no operator's name.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

/// A sliding window; one entry per spatial axis. pads: begin values, then end values (ONNX order).
struct Window {
  std::vector<std::int64_t> kernel, strides, dilations, pads;
  int spatial() const { return static_cast<int>(kernel.size()); }
  std::int64_t begin(int i) const { return pads[i]; }
  std::int64_t end(int i) const { return pads[i + spatial()]; }
  /// Distance between the first and last tap, plus one.
  std::int64_t span(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
  /// Taps of the whole window.
  std::int64_t taps() const;
  bool operator==(const Window&) const = default;
};

/// X (N, C, spatial...) with W (M, C / groups, kernel...); integers: then their zero points, where given.
/// Taps in the padding are zero, or X's zero point.
struct ConvWork {
  Window window;
  std::int64_t groups = 1;
  bool operator==(const ConvWork&) const = default;
};

/// X (N, C, spatial...) with W (C, M / groups, kernel...), scattered: y[i * stride + k * dilation - pad].
struct ConvTransposeWork {
  Window window;
  std::int64_t groups = 1;
  bool operator==(const ConvTransposeWork&) const = default;
};

/// How the floats on the left of a product by packed integers are rounded: whether the model allows to round
/// each row to int8 per block, with the largest magnitude as 127, and whether that is done.
enum class RowRounding : std::uint8_t { kNone, kAllowed, kDone };

/// A (..., M, K) times B (..., K, N), batches broadcast; integers: then their zero points, where given.
struct ProductWork {
  /// Other than 0: of floats by one matrix of integers, which stand for (B - zero point) * scale; operand 2
  /// are the scales, 3 the zero points, where given: (ceil(K / block), N), one for so many rows of a column.
  std::int64_t block = 0;
  RowRounding rounding = RowRounding::kNone;
  bool operator==(const ProductWork&) const = default;
};

/// Maximum or mean over sliding windows of X (N, C, spatial...).
struct PoolWork {
  Window window;
  bool is_max = false;
  bool count_include_pad = false;  // mean: taps in the padding count
  bool operator==(const PoolWork&) const = default;
};

/// softmax(scale * Q K' + mask) V. Q (heads..., rows, size), K (key heads..., columns, size), V (key
/// heads..., columns, value size), and a mask that broadcasts to (heads..., rows, columns). A last heads axis
/// that is g times as long as that of K and V has g query heads in turn for every key head.
struct AttentionWork {
  static constexpr int kMask = 3, kAdded = 4;
  Shape heads, key_heads;
  Dim rows = 0, columns = 0;
  std::int64_t size = 0, value_size = 0;
  std::int64_t group = 1;    // query heads per key head
  bool has_mask = false;     // bool: false takes the score `fill`; float32: added to the score
  bool adds_behind = false;  // behind a bool mask stands a float32 one, added to all that it leaves
  float scale = 1;           // of the products, before the mask
  float fill = 0;            // of what a bool mask leaves out
  bool causal = false;       // row i sees columns up to i + past, whatever the mask says
  std::int64_t past = 0;
  bool zero_if_empty = false;  // a row all of whose scores are -infinity is zero, not NaN

  /// (heads..., rows, columns).
  Shape scores() const;
  bool operator==(const AttentionWork&) const = default;
};

/// Functions of recurrent cells (ONNX specification of RNN, attribute activations).
enum class RecurrentFunction : std::uint8_t {
  kAffine,       // alpha * x + beta
  kElu,          // x < 0 ? alpha * (exp(x) - 1) : x
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kRelu,
  kScaledTanh,  // alpha * tanh(beta * x)
  kSigmoid,
  kSoftplus,  // log(1 + exp(x))
  kSoftsign,  // x / (1 + |x|)
  kTanh,
  kThresholdedRelu,  // x > alpha ? x : 0
};

/// An activation of a recurrent cell; alpha and beta are meaningful only where the function has them.
struct RecurrentActivation {
  RecurrentFunction function = RecurrentFunction::kTanh;
  double alpha = 0;
  double beta = 0;
  bool operator==(const RecurrentActivation&) const = default;
};

enum class RecurrentCell : std::uint8_t { kRnn, kGru, kLstm };
/// Gates, in the order of the specification: RNN i; GRU z, r, h; LSTM i, o, f, c.
int gates_of(RecurrentCell cell);
/// Activations of each direction: RNN f; GRU f, g; LSTM f, g, h.
int functions_of(RecurrentCell cell);

/// Operands X, W, R, B, sequence_lens, initial_h, then of LSTM initial_c and P;
/// those from B on may be absent.
struct RecurrentWork {
  RecurrentCell cell = RecurrentCell::kRnn;
  Dim steps = 0, batch = 0;
  std::int64_t inputs = 0, hidden = 0;
  int directions = 1;
  bool reverse_first = false;  // direction "reverse"
  bool batch_first = false;    // layout 1
  bool has_clip = false;
  double clip = 0;
  bool linear_before_reset = false;              // GRU
  bool input_forget = false;                     // LSTM
  std::vector<RecurrentActivation> activations;  // of direction d at [d * functions_of(cell), ...)
  bool operator==(const RecurrentWork&) const = default;
};

/// The k largest or smallest along an axis, and their positions.
struct TopKWork {
  int axis = 0;
  bool largest = true;
  Dim k = 0;
  bool operator==(const TopKWork&) const = default;
};

enum class ScatterCombine : std::uint8_t { kReplace, kAdd, kMul, kMax, kMin };

/// Data, indices, updates. With `axis` one element moves along that axis; without, index tuples name slices.
struct ScatterWork {
  bool by_tuples = false;
  int axis = 0;  // not by tuples
  ScatterCombine combine = ScatterCombine::kReplace;
  bool operator==(const ScatterWork&) const = default;
};

/// Running sums, or products, along an axis.
struct ScanWork {
  int axis = 0;
  bool exclusive = false, reverse = false, is_product = false;
  bool operator==(const ScanWork&) const = default;
};

/// Every sample of the batch and every head has a matrix S of (size, value size). In each step S is
/// multiplied by factors, row by row or as a whole, then the outer product of key and value is added; where
/// there are rates, of the key and rate * (value - S' key). The result of a query is scale * S' query. Heads
/// share keys in turn; query heads share heads, or heads share queries, and there is a result for each of
/// those that are more. Operands query, key and value (batch, steps, heads * size), past S (batch, heads,
/// size, value size), factors (batch, steps, heads or heads * size), rates (batch, steps, heads or 1); those
/// from past on may be absent. Results: S after the last step, and the results of the queries.
struct LinearAttentionWork {
  static constexpr int kPast = 3, kFactors = 4, kRates = 5;
  Dim batch = 0, steps = 0;
  std::int64_t query_heads = 0, key_heads = 0, heads = 0, size = 0, value_size = 0;
  float scale = 1;
  std::int64_t results() const { return query_heads > heads ? query_heads : heads; }
  bool operator==(const LinearAttentionWork&) const = default;
};

enum class TreeCombine : std::uint8_t { kSum, kMin, kMax };

/// What decision trees give rows of numbers. Operands x (rows, columns), the table of all trees and their nodes
/// (ir/ops/tree_tables.h), and what leaves hold, (leaves, width); the result is (rows, groups, width), of which each group
/// has as many trees.
struct TreesWork {
  std::int64_t trees = 0, groups = 1;
  TreeCombine combine = TreeCombine::kSum;
  std::int64_t nodes = 0, levels = 0;            // inner nodes and longest ways of all trees
  std::int64_t most_nodes = 0, most_leaves = 0;  // of a tree, leaves included in the former
  bool operator==(const TreesWork&) const = default;
};

/// Boxes (batch, boxes, 4), with scores (batch, classes, boxes), that overlap none of their class with a higher score, as
/// rows (batch, class, box), at most `most` of a class, and how many rows there are. Operands 2 to 4 are the most of a
/// class that a run asks for, the overlap that suppresses, and what scores must exceed; each may be absent.
struct SuppressWork {
  static constexpr int kMost = 2, kOverlap = 3, kScore = 4;
  Dim most = 0;
  bool is_centered = false;  // boxes are centres and sizes, not corners
  bool operator==(const SuppressWork&) const = default;
};

/// In the order of Work's alternatives.
enum class Kind : std::uint8_t {
  kConv,
  kConvTranspose,
  kProduct,
  kPool,
  kAttention,
  kRecurrent,
  kTopK,
  kScatter,
  kScan,
  kLinearAttention,
  kTrees,
  kSuppress
};
using Work = std::variant<ConvWork, ConvTransposeWork, ProductWork, PoolWork, AttentionWork, RecurrentWork,
                          TopKWork, ScatterWork, ScanWork, LinearAttentionWork, TreesWork, SuppressWork>;

Kind kind_of(const Work& work);
/// "conv", "conv_transpose", ...: the first word of the names of the kind's families.
std::string_view name_of(Kind kind);
/// "conv 3x3, stride 1x1, pads 1,1,1,1", for logs.
std::string to_string(const Work& work);

}  // namespace gcompile::ir
