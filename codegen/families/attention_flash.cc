// attention.flash: softmax(scale * Q K' + mask) V without the matrix of scores, in blocks of rows. Source:
// online softmax (Milakov and Gimelshein, 2018), FlashAttention (Dao et al., 2022).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/attention_heads.h"
#include "codegen/loops/c_types.h"
#include "gcrt/cuda/attention/attention_plan.h"

namespace gcompile {
namespace {

using ir::Shape;

/// Elements of a head.
constexpr std::int64_t kLargestHeadOnCuda = 512;

constexpr std::int64_t kBlockRows = 24;  // of the widest vectors
/// Parts that have panels of their own however small the result is.
constexpr std::int64_t kFewCores = 4;

ir::Dim whole_panels(ir::Dim columns) { return ceil_div(columns, 16) * 16; }

Refusal refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuse_unless_factors(problem, machine, 3, {})) return elements;
  return refuse_heads_above(kLargestHead, problem);
}

ir::Dim panel_floats(const ir::AttentionWork& work) {
  return work.size * whole_panels(work.columns) + work.columns * whole_panels(work.value_size);
}

PlannedCost with_slots(const ir::Problem& problem, const Machine& machine, std::int64_t slots) {
  PlannedCost out;
  out.plan.fields = {slots};
  out.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.5);
  out.cost.scratch = slots * panel_floats(std::get<ir::AttentionWork>(problem.work)) * 4;
  out.cost.code_key = "attention";
  return out;
}

constexpr std::array<const char*, 1> kFields = {"parts"};

/// Each part of the work has panels of its own: as many as are worth a thread, but, beyond a few, in no more
/// scratch than the result has; or one.
std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  const std::int64_t blocks = work.group * ((work.rows + kBlockRows - 1) / kBlockRows);
  const std::int64_t results = ir::element_count(problem.results[0].shape);
  const std::int64_t fits = std::max<std::int64_t>(kFewCores, results / panel_floats(work));
  const std::int64_t time = with_slots(problem, machine, 1).cost.picoseconds;
  const std::int64_t most = std::min<std::int64_t>(
      {ir::element_count(work.key_heads) * blocks, fits, time / machine.least_item, machine.cores});
  std::vector<PlannedCost> out = {with_slots(problem, machine, std::max<std::int64_t>(1, most))};
  if (most > 1) out.push_back(with_slots(problem, machine, 1));
  return out;
}

/// "[&](std::ptrdiff_t head, float* panels) { pack_attention(...); },"
void write_packing(const ir::AttentionWork& work, const KernelTensor& k, const KernelTensor& v,
                   CodeText& code, SizeParameters& sizes) {
  const std::size_t batch = work.heads.size();
  const auto strides = [&](const KernelTensor& tensor) {
    return fmt::format("{{{}, {}}}", sizes(tensor.strides[batch]), sizes(tensor.strides[batch + 1]));
  };
  const HeadOffset to_k = moved(k.strides, work.key_heads, sizes),
                   to_v = moved(v.strides, work.key_heads, sizes);
  std::set<int> axes = to_k.axes;
  axes.insert(to_v.axes.begin(), to_v.axes.end());
  open_head(code, axes, "float* panels", work.key_heads, sizes);
  code.line(fmt::format("pack_attention(shape, k{}, {}, v{}, {}, panels);", to_k.text, strides(k), to_v.text,
                        strides(v)));
  code.close("},");
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const auto& shape = std::get<ir::AttentionWork>(problem.work);
  // What is packed at a time has memory at the largest sizes, whatever is typical.
  const std::int64_t slots = ir::are_constant(problem)
                                 ? plan.fields[0]
                                 : plans(ir::at_highest(problem), writer.machine()).front().plan.fields[0];
  KernelCall& out = writer.call();
  const auto size = [&](ir::Dim number) { return out.sizes(number); };
  out.headers = {"gcrt/cpu/attention.h"};
  const KernelTensor q = writer.operand(0, "q");
  const KernelTensor k = writer.operand(1, "k");
  const KernelTensor v = writer.operand(2, "v");
  const std::size_t batch = shape.heads.size();
  const AttentionMaskText mask = mask_text(problem, writer);
  writer.scratch(slots * ir::highest(panel_floats(shape)) * 4, "packed", "float");
  const EpilogueWriter epilogue(writer, {static_cast<int>(batch)}, static_cast<int>(batch) + 1);

  CodeText code(1);
  write_attention_shape(shape, code, out.sizes);
  // A run of one row does not pack K and V, and is that of attention.row.
  const bool may_be_one = !shape.rows.is_constant() && ir::lowest(shape.rows) <= 1 && has_dense_keys(problem);
  if (may_be_one) out.headers = {"gcrt/cpu/attention_row.h"};
  code.open(may_be_one ? "attention_of_run(" : "attention(");
  code.line(
      fmt::format("{}, shape, /*heads of K and V*/ {}, /*query heads for each*/ {}, /*parts*/ "
                  "{}, packed,",
                  threads_argument(out), size(ir::element_count(shape.key_heads)), shape.group, slots));
  if (may_be_one) {
    write_keys(shape, k, v, code, out.sizes);
  } else {
    write_packing(shape, k, v, code, out.sizes);
  }
  write_heads(shape, may_be_one ? "auto" : "AttentionTask", true, q, mask, epilogue, code, out.sizes);
  out.body = code.text();
}

/// The two axes of heads that the kernel of CUDA knows: the last one, and the only other one longer than 1.
struct HeadAxes {
  std::optional<std::size_t> batch, head;
  bool are_more = false;
  explicit HeadAxes(const Shape& heads) {
    if (heads.empty()) return;
    head = heads.size() - 1;
    for (std::size_t axis = 0; axis + 1 < heads.size(); ++axis) {
      if (heads[axis] == 1) continue;
      are_more = are_more || batch;
      batch = axis;
    }
  }
  static ir::Dim of(const Shape& list, std::optional<std::size_t> axis, std::int64_t absent) {
    return axis ? list[*axis] : ir::Dim(absent);
  }
};

/// Heads are numbers, and few enough at all sizes.
bool cuda_takes_formulas(const ir::Problem& problem) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  const HeadAxes axes(work.heads);
  const ir::Dim heads = HeadAxes::of(work.key_heads, axes.head, 1);
  return !axes.are_more && heads.is_constant() && HeadAxes::of(work.heads, axes.head, 1).is_constant() &&
         ir::highest(HeadAxes::of(work.heads, axes.batch, 1) * heads) <= UINT16_MAX && fits_32_bits(problem);
}

gcrt::AttentionShape cuda_sizes(const ir::AttentionWork& work) {
  const HeadAxes axes(work.heads);
  gcrt::AttentionShape sizes{};
  sizes.batch = narrow(HeadAxes::of(work.heads, axes.batch, 1));
  sizes.heads = narrow(HeadAxes::of(work.heads, axes.head, 1));
  sizes.kv_heads = narrow(HeadAxes::of(work.key_heads, axes.head, 1));
  sizes.queries = narrow(work.rows);
  sizes.keys = narrow(work.columns);
  sizes.head_size = narrow(work.size);
  sizes.value_size = narrow(work.value_size);
  return sizes;
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::AttentionWork>(problem.work);
  if (Refusal elements = refuse_unless_factors(problem, machine, 3, {0, 1, 2})) return elements;
  if (problem.operands[1].element != problem.operands[2].element) return "keys and values of other elements";
  if (work.has_mask && ir::is_float(problem.operands[ir::AttentionWork::kMask].element) &&
      problem.operands[ir::AttentionWork::kMask].element != ir::ElementType::kFloat32) {
    return "a mask of 16-bit floats";
  }
  if (Refusal head = refuse_heads_above(kLargestHeadOnCuda, problem)) return head;
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (HeadAxes(work.heads).are_more) return "heads along more than two axes";
  const gcrt::AttentionShape sizes = cuda_sizes(work);
  if (std::int64_t{sizes.batch} * sizes.kv_heads > UINT16_MAX) return "more than 65535 heads";
  const Precision precision = precision_of(problem, machine, 3);
  const int q_bytes = element_bytes(problem, 0), kv_bytes = element_bytes(problem, 1);
  const gcrt::AttentionPlan plan = gcrt::plan_attention(machine.gpu, precision, sizes, q_bytes, kv_bytes);
  if (!gcrt::attention_fits(machine.gpu, plan.tile, precision, sizes, q_bytes, kv_bytes)) {
    return "heads that do not fit the shared memory";
  }
  if (work.has_mask && !work.adds_behind && std::isfinite(work.fill) &&
      problem.operands[ir::AttentionWork::kMask].element == ir::ElementType::kBool) {
    return "a mask that leaves a finite score";
  }
  return std::nullopt;
}

const char* tile_name(gcrt::AttentionTile tile) {
  switch (tile) {
    case gcrt::AttentionTile::k16:
      return "k16";
    case gcrt::AttentionTile::k16ByKeys:
      return "k16ByKeys";
    case gcrt::AttentionTile::k16ByColumns:
      return "k16ByColumns";
    case gcrt::AttentionTile::k64:
      return "k64";
    case gcrt::AttentionTile::k1ByLanes:
      return "k1ByLanes";
    case gcrt::AttentionTile::k2ByLanes:
      return "k2ByLanes";
    case gcrt::AttentionTile::k4ByLanes:
      return "k4ByLanes";
    case gcrt::AttentionTile::k8ByLanes:
      return "k8ByLanes";
  }
  GC_CHECK(false);
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const gcrt::AttentionPlan plan = gcrt::plan_attention(machine.gpu, precision_of(problem, machine, 3),
                                                        cuda_sizes(std::get<ir::AttentionWork>(problem.work)),
                                                        element_bytes(problem, 0), element_bytes(problem, 1));
  PlannedCost only;
  only.plan.fields = {static_cast<std::int64_t>(plan.tile), plan.splits};
  only.cost.time = plan.time;
  only.cost.picoseconds = picoseconds_of(plan.time);
  return {only};
}

/// Adds the parameters for keys or values, and returns all places that the kernel copies from or to; that of
/// `name`, of all or of the new ones beside a cache, first.
std::vector<KernelTensor> keys_or_values(CallWriter& writer, int i, const std::string& name) {
  const JoinedOperand* const joined = writer.joined(i);
  if (!joined) return {writer.operand(i, name)};
  const Shape& all = writer.type(i).shape;
  return {
      writer.rows_of(i, joined->fresh, all[all.size() - 2] - joined->past_rows, false, name),
      writer.rows_of(i, joined->past, joined->past_rows, false, name + "_past"),
      writer.rows_of(i, joined->joined, joined->end_written - joined->first_written, true, name + "_joined")};
}

/// Whether every copy of the operands moves 16 bytes at all sizes: see attention() of gcrt.
bool copies_whole_chunks(const std::vector<KernelTensor>& places, const gcrt::AttentionShape& sizes,
                         gcrt::AttentionTile tile) {
  const bool is_padded = gcrt::attention_padded(sizes.head_size) != sizes.head_size ||
                         gcrt::attention_columns(tile, sizes.value_size) != sizes.value_size;
  return !is_padded && std::all_of(places.begin(), places.end(), [](const KernelTensor& place) {
    const std::span<const ir::Dim> steps(place.strides);
    return steps.back() == 1 && copied_in(place, steps.first(steps.size() - 1)) == "copied_in<16>";
  });
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const auto& shape = std::get<ir::AttentionWork>(problem.work);
  const HeadAxes axes(shape.heads);
  const std::size_t rank = shape.heads.size() + 2;
  const ir::Problem typical = ir::at_typical(problem);
  const gcrt::AttentionShape sizes = cuda_sizes(std::get<ir::AttentionWork>(typical.work));
  const int splits = static_cast<int>(plan.fields[1]);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/attention/attention.h"};
  const auto strides = [&](const Shape& all) {
    std::string text;
    for (const ir::Dim stride :
         {HeadAxes::of(all, axes.batch, 0), HeadAxes::of(all, axes.head, 0), all[rank - 2], all[rank - 1]}) {
      text += (text.empty() ? "" : ", ") + out.sizes(stride);
    }
    return text;
  };
  const KernelTensor q = writer.operand(0, "q");
  const std::vector<KernelTensor> k = keys_or_values(writer, 1, "k"), v = keys_or_values(writer, 2, "v");
  std::vector<KernelTensor> places = {q};
  places.insert(places.end(), k.begin(), k.end());
  places.insert(places.end(), v.begin(), v.end());
  std::string mask = "AttentionMask{}";
  const char* kind = "kNone";
  if (shape.has_mask) {
    const KernelTensor operand = writer.operand(ir::AttentionWork::kMask, "mask");
    kind = operand.element == ir::ElementType::kBool ? "kBoolean" : "kAdditive";
    const std::string of_mask =
        strides(mask_strides(problem.shape(ir::AttentionWork::kMask), operand.strides, rank));
    mask = fmt::format("AttentionMask{{mask, {}}}", of_mask);
    if (shape.adds_behind) {
      const KernelTensor behind = writer.operand(ir::AttentionWork::kAdded, "added");
      kind = "kBooleanThenAdditive";
      mask =
          fmt::format("AttentionMask{{mask, {}, /*of what it hides*/ {}, {{added, {}}}}}", of_mask,
                      literal_of(shape.fill),
                      strides(mask_strides(problem.shape(ir::AttentionWork::kAdded), behind.strides, rank)));
    }
  }
  const auto tile = static_cast<gcrt::AttentionTile>(plan.fields[0]);
  const ir::Dim batch = HeadAxes::of(shape.heads, axes.batch, 1);
  const ir::Dim rows = batch * sizes.kv_heads * (sizes.heads / sizes.kv_heads) * shape.rows;
  const gcrt::AttentionShape largest = cuda_sizes(std::get<ir::AttentionWork>(ir::at_highest(problem).work));
  const std::string split =
      split_argument(writer, splits, rows * gcrt::attention_part_floats(sizes.value_size),
                     gcrt::attention_counters(tile, largest, splits));
  const Precision precision = precision_of(problem, writer.machine(), 3);
  warn_of_precision(problem, writer, 3);
  writer.device().products_per_clock = gcrt::products_per_clock(writer.machine().gpu, precision);
  std::vector<int> grid_axes;
  if (axes.batch) grid_axes.push_back(static_cast<int>(*axes.batch));
  if (axes.head && sizes.heads > 1) grid_axes.push_back(static_cast<int>(*axes.head));
  const EpilogueWriter epilogue(writer, {static_cast<int>(rank) - 2}, static_cast<int>(rank) - 1, grid_axes);
  CodeText code(1);
  const std::string queries = out.sizes.as_int(shape.rows), keys = out.sizes.as_int(shape.columns);
  code.line(fmt::format("const AttentionShape shape = {{/*batch, heads, heads of K and V*/ {}, {}, {},",
                        out.sizes.as_int(batch), sizes.heads, sizes.kv_heads));
  code.line(
      fmt::format("    /*queries, keys*/ {}, {}, /*sizes*/ {}, {}, /*scale*/ {}, /*causal, past, zero if "
                  "empty*/ {}, {}, {},",
                  queries, keys, sizes.head_size, sizes.value_size, literal_of(shape.scale), shape.causal,
                  shape.past, shape.zero_if_empty));
  code.line(fmt::format("    /*strides of q, k, v*/ {{{}}}, {{{}}}, {{{}}}}};", strides(q.strides),
                        strides(k.front().strides), strides(v.front().strides)));
  out.shape = code.text();
  code = CodeText(1);
  code.line(epilogue.declaration());
  const JoinedOperand* const joined = writer.joined(1);
  if (joined) {
    code.line(fmt::format("const AttentionCache<{}> cache = {{/*rows of the past*/ {},",
                          kernel_type(writer.type(1).element), out.sizes.as_int(joined->past_rows)));
    for (const auto& [i, name, end] : {std::tuple(1, "k", ","), std::tuple(2, "v", "};")}) {
      const JoinedOperand& rows = *writer.joined(i);
      code.line(
          fmt::format("    {{{0}_past, {{{1}}}, {0}_joined, {{{2}}}, /*written from, to*/ {3}, {4}}}{5}",
                      name, strides(rows.past.strides), strides(rows.joined.strides),
                      out.sizes.as_int(rows.first_written), out.sizes.as_int(rows.end_written), end));
    }
  }
  code.line(fmt::format("attention<{}, AttentionTile::{}, {}, {}, AttentionMaskKind::{}{}>(",
                        precision_argument(precision), tile_name(tile),
                        gcrt::attention_padded(sizes.head_size), gcrt::attention_padded(sizes.value_size),
                        kind, copies_whole_chunks(places, sizes, tile) ? ", /*bytes of a copy*/ 16" : ""));
  code.line(
      fmt::format("    queue, shape, q, k, v, {}, {}, epilogue{});", mask, split, joined ? ", cache" : ""));
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_attention_flash() {
  static const KernelFamily family = {"attention.flash",
                                      ir::Kind::kAttention,
                                      nullptr,
                                      {{{.refuses = refuses,
                                         .takes_formulas = takes_attention_formulas,
                                         .needs = needs_attention_rows,
                                         .fields = kFields,
                                         .plans = plans,
                                         .call = call},
                                        {.refuses = cuda_refuses,
                                         .takes_formulas = cuda_takes_formulas,
                                         .needs = needs_attention_rows,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call,
                                         .device = {.joins_operands = true}}}}};
  return family;
}

}  // namespace gcompile
