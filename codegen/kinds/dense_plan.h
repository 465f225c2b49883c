#pragma once
// How a dense kernel of the CPU cuts its product into register tiles, blocks and work items, which it is told
// by its call (gcrt/cpu/product/gemm.h, Blocking). Model of the caches: Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", 2008.

#include <span>
#include <string>

#include "codegen/kinds/matrix_product.h"

namespace gcompile {

/// A product of `rows` x `depth` by `depth` x `columns`, `groups` times over the same rows.
struct DenseWork {
  std::int64_t rows = 0, columns = 0, depth = 0;
  std::int64_t groups = 1;
  bool is_interleaved = false;   // the rows of all groups lie side by side, as the channels of an image do
  std::int64_t left_bytes = 0;   // that the rows of one group read, each byte once
  std::int64_t right_bytes = 0;  // of one group, packed
  std::int64_t taps = 0;         // of a convolution whose rows are pointers for each of them; 0: they are not
  bool may_cut_depth = false;    // if that is faster, sums wait in memory between parts of K
  bool has_tile = true;  // a plan says which; else it follows from the elements (gcrt/cpu/product/dot_int8.h)
  std::int64_t run_bytes = 0;  // of products of bytes: so many of k lie together in the left side
};

/// Fields: rows and columns of a work item, rows of a block, depth of a part of K (0: all of them); then, for
/// each level of the machine, rows and vectors of the tile.
std::span<const char* const> dense_fields();
/// The fields for products of bytes: the same four, then "in tiles", 1,
/// if the machine has a tile unit and it pays.
std::span<const char* const> integer_fields();

/// The work of one entry of a product's batch.
DenseWork dense_work(const Product& product, std::int64_t element_bytes);
/// The fastest.
KernelPlan dense_plan(DenseWork work, const Machine& machine);

/// "UsualTile": the plan's tiles of all levels, or in the tile unit by so many products of bfloat16 where a
/// level has one; empty, if it names none.
std::string dense_tile(const KernelPlan& plan, int bfloat16_products = 0);
/// Defines `blocking`.
void write_blocking(const KernelPlan& plan, CodeText& code);
bool cuts_depth(const KernelPlan& plan);
/// The same with all of K at once: of rows that only a run knows, no memory is planned for sums that wait.
KernelPlan without_cuts_of_depth(KernelPlan plan);
bool is_in_tiles(const KernelPlan& plan);
/// Multiply-adds of bytes by this plan, as Level::byte_rate.
double byte_rate(const DenseWork& work, const KernelPlan& plan, const Machine& machine);
/// By which each of float32 is formed in the tile unit, as the machine's precision says; 0: none are.
int bfloat16_products(const DenseWork& work, const Machine& machine);
/// The same, and what the call then needs.
int in_bfloat16(const DenseWork& work, CallWriter& writer);
/// Multiply-adds of floats in the time of one by FMA.
double float_rate(const DenseWork& work, const Machine& machine);
/// The template argument of a function that multiplies in tiles, which it notes in the call; else nothing.
/// `narrow`: its words are bytes, as those of tiles are.
const char* in_tiles(const KernelPlan& plan, bool narrow, CallWriter& writer);
/// Bytes of the sums that wait (gcrt/cpu/product/gemm.h, parked_sums_size); 0: none do.
std::int64_t parked_bytes(const DenseWork& work, const KernelPlan& plan);

}  // namespace gcompile
