#pragma once
// Prints the body of one loop nest: addresses, reductions and stores. How the nest is walked (loops over
// packs on the CPU, a grid of threads on CUDA) is up to the class derived from it.

#include <set>
#include <string>
#include <vector>

#include "codegen/loops/loop_nest.h"
#include "codegen/loops/loop_printer.h"
#include "codegen/loops/size_parameters.h"

namespace gcompile {

/// What printed text names (DESIGN law 12).
struct Mentions {
  std::uint64_t axes = 0;  // bit i: axis_name(i)
  std::set<int> operands;
  bool result = false;
};

class NestPrinter {
 public:
  NestPrinter(LoopNest nest, const std::vector<KernelTensor>& operands, const KernelTensor* result,
              CodeText& code, SizeParameters& sizes);
  NestPrinter(const NestPrinter&) = delete;
  NestPrinter& operator=(const NestPrinter&) = delete;
  virtual ~NestPrinter() = default;

  const Mentions& mentions() const { return mentions_; }

 protected:
  static std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }
  static std::string axis_name(int i);
  /// The variable of what stage `k` leaves.
  std::string accumulator(int k) const;
  /// The axis' name, noted as mentioned.
  std::string mentioned(int i) const {
    mentions_.axes |= bit(i);
    return axis_name(i);
  }
  const NestAxis& axis(int i) const { return nest_.axes[i]; }
  /// The final expression's root, then those of all stages.
  std::vector<int> roots(int region_root) const;

  /// A serial loop; values that it settles are declared at its top.
  void open_loop(int loop, const std::vector<int>& roots);
  /// The same over [begin, end), the items of a thread.
  void open_item_loop(int loop, const std::vector<int>& roots);
  /// From here on `lane` is in scope and values may vary per lane along the axis.
  void enter_lanes(int loop);
  void leave_lanes();
  /// A loop over packs along the axis.
  void open_vector_loop(int loop);
  void close_vector_loop();
  /// ", [&](auto lane, std::ptrdiff_t i1) GCRT_LAMBDA_INLINE {": the rest of such a loop's head; `named` when
  /// the body names its axis.
  /// `has_lane`: the body mentions the lane; what has no name is not used.
  std::string body_head(int loop, bool named, bool has_lane = true) const;
  /// From here on Accumulator(k) is a variable; it varies per lane when the parallel axis is the vector axis.
  void settle(int k);
  /// All parallel axes are bound: reductions, then the final expression.
  void point(int region_root);
  void store(int root);
  /// Positions that lanes along the vector axis count up need no packs where they are only compared with what all lanes
  /// share. Returns whether there are any.
  bool compare_positions(int region_root);
  /// Whether values along the axis have 8-byte elements.
  bool has_wide_elements(int loop) const;
  /// Index as an integer expression; inside lanes the vector axis stands for the first lane.
  std::string scalar_index(const ir::Index& index) const { return index_text(index, false); }

  /// Type of loop counters.
  virtual std::string counter_type() const { return "std::ptrdiff_t"; }
  /// "vectorize<4>(group, 64" with what the target needs up to the count.
  virtual std::string vectorize_call(int loop) const = 0;
  /// "reduce_add<float>(64" likewise; `is_part`: inside loops over further reduced axes.
  virtual std::string reduce_call(const char* function, ir::ElementType type, int loop,
                                  bool is_part) const = 0;
  /// "arg_reduce<float, true, false>(group, 64" likewise, for a row that a group shares; empty: none does.
  virtual std::string arg_reduce_call(const ir::Stage& /*stage*/, int /*loop*/) const { return {}; }
  /// "float, true, false": type, maximum, last of equals.
  std::string arg_reduction(const ir::Stage& stage) const;
  /// Parameter of the body of such a loop.
  virtual std::string body_parameter(int loop, bool named) const {
    return named ? "std::ptrdiff_t " + axis_name(loop) : "std::ptrdiff_t";
  }
  /// Whether one such loop goes over all reduced axes.
  virtual bool walks_rows() const { return false; }
  /// Around the statements of its body.
  virtual void enter_body(int loop) { enter_lanes(loop); }
  virtual void leave_body(int loop);
  /// Before the loops of a stage.
  virtual void begin_stage(std::size_t /*k*/) {}
  /// What stands for the body of a reduction when the root's values are at hand; empty: they are not.
  virtual std::string values_of(int /*root*/) const { return {}; }
  /// Behind such loops: joins what the members of a group have summed.
  virtual void finish_parts(const char* /*function*/, const std::string& /*name*/) {}
  /// Stores the value of a finished reduction.
  virtual void store_reduced(int region_root) { store(region_root); }
  /// Whether the value changes along the loop that a body is for: else its parameter has no name.
  bool varies(int root, int loop) const;
  /// "x + 4 * i0", the place of an element.
  std::string position(const std::string& pointer, const ir::Index& index) const;
  /// "add", of a reduction that has no positions.
  static const char* function_of(ir::Combine combine);

  LoopNest nest_;
  const std::vector<KernelTensor>& operands_;
  const KernelTensor* result_;
  CodeText& code_;
  SizeParameters& sizes_;
  std::vector<std::uint64_t> dependence_;
  ExpressionPrinter expressions_;
  std::uint64_t bound_ = 0;
  mutable Mentions mentions_;

 private:
  void open_loop(int loop, const std::string& begin, const std::string& end, const std::vector<int>& roots);
  void reduce(int k, int region_root);
  void reduce_lanes(const ir::Stage& stage, const std::string& name, std::vector<int> loops);
  void arg_reduce(const ir::Stage& stage, const std::string& name, const std::vector<int>& loops);
  bool may_be_negative(const ir::Index& index) const;
  std::string index_text(const ir::Index& index, bool vector) const;
  std::string atom_text(const ir::IndexAtom& atom, bool vector) const;
  bool index_varies_only_affinely(const ir::Index& index) const;
  std::string leaf(int id, bool vector) const;

  std::uint64_t vector_mask_ = 0;
  int vector_axis_ = -1;
};

}  // namespace gcompile
