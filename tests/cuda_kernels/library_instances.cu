// The kernels of recurrences, linear attention, TopK, scatters, running sums, trees and boxes as emitted projects
// instantiate them, for nvcc: compiled for every architecture, never run.
#include "gcrt/cuda/attention/linear_attention.h"
#include "gcrt/cuda/library.h"
#include "gcrt/cuda/rnn.h"
#include "gcrt/cuda/rnn_loops.h"
#include "gcrt/cuda/scan.h"
#include "gcrt/cuda/scatter.h"
#include "gcrt/cuda/suppress.h"
#include "gcrt/cuda/top_k_loops.h"
#include "gcrt/cuda/trees.h"

namespace GCRT_NAMESPACE {

void recurrences(Queue& q, RnnShape s, RnnOperands o, RnnOptions op) {
  lstm<Tile::k16x64, RnnTile<1, 12>, true>(q, s, o, op, 4, SplitDepth<>{});
  lstm<Tile::k16x64, RnnTile<4, 8>, false>(q, s, o, op, 4, SplitDepth<>{});
  lstm<Tile::kGemv1, RnnTile<4, 0>, true>(q, s, o, op, 4, SplitDepth<>{});
  gru<Tile::kGemv1, RnnTile<4, 4>, true>(q, s, o, op, 4, SplitDepth<>{});
  gru<Tile::kGemv1, RnnTile<1, 6>, false>(q, s, o, op, 4, SplitDepth<>{});
  gru<Tile::kGemv1, RnnTile<1, 0>, false>(q, s, o, op, 4, SplitDepth<>{});
  gru_linear<Tile::kGemv1, RnnTile<4, 8>, false>(q, s, o, op, 4, SplitDepth<>{});
  rnn<Tile::kGemv1, RnnTile<1, 12>, false>(q, s, o, op, 4, SplitDepth<>{});
  lstm<Tile::k16x64, RnnTile<1, 12>, false>(q, s, o, op, 4, SplitDepth<>{});
}

template <class E>
void recurrences_by_definition(Queue& q, RnnShape s, RnnTensors<E> t, RnnOptionsOf<E> op) {
  recurrence_by_definition<LstmByDefinition>(q, s, t, op);
  recurrence_by_definition<GruByDefinition>(q, s, t, op);
  recurrence_by_definition<RnnByDefinition>(q, s, t, op);
}
template void recurrences_by_definition(Queue&, RnnShape, RnnTensors<float>, RnnOptionsOf<float>);
template void recurrences_by_definition(Queue&, RnnShape, RnnTensors<double>, RnnOptionsOf<double>);

void library(Queue& q, float* f, std::int64_t* p, double* d, std::uint32_t* u, const Half* from, Half* to) {
  top_k<true>(q, 1, 5, 1, 2, f, f, p);
  top_k<false>(q, 1, 5, 1, 2, d, d, p);
  top_k<false>(q, 1, 5, 1, 2, p, p, p);
  top_k_by_rank(q, 5, TopKByRank<true, float>{5, 1, 2, f, f, p});
  top_k_by_rank(q, 5, TopKByRank<false, std::int64_t>{5, 1, 2, p, p, p});
  std::int64_t e[3] = {};
  scatter_nd<ScatterAdd>(q, 1, 1, 1, 1, e, f, p, f, f, u);
  scatter_nd<ScatterReplace>(q, 1, 1, 1, 1, e, from, p, from, to, u);
  scatter_elements<ScatterMax>(q, 1, 1, 1, e, e, e, d, p, d, d, u);
  cumulative_sum(q, 1, 1, 1, false, false, f, f);
  cumulative_sum(q, 1, 1, 1, false, false, p, p);
  linear_attention(q, LinearAttentionShape{}, LinearAttentionTensors<float>{});
}

void trees(Queue& q, const Trees<float, TreeNode<float, std::uint16_t, std::uint8_t>>& small,
           const Trees<double, TreeNode<double, std::int32_t, std::int32_t>>& large) {
  sum_trees<TreeSum>(q, small);
  sum_trees<TreeMax>(q, large);
}

void boxes(Queue& q, SuppressShape s, SuppressLimits l, const float* f, std::int64_t* p, std::int32_t* scratch) {
  suppress<CornerBoxes>(q, s, l, f, f, p, p, scratch);
  suppress<CenteredBoxes>(q, s, l, f, f, p, p, scratch);
}

}  // namespace GCRT_NAMESPACE
