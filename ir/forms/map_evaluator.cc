#include "ir/forms/map_evaluator.h"

#include <algorithm>
#include <cstring>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "ir/forms/rounding.h"
#include "ir/tensors/strided_nest.h"

namespace gcompile::ir {
namespace {

/// Elements computed at once: the values of a node stay in the first cache.
constexpr std::int64_t kLanes = 256;
/// What one node is worth along a block; which of the two follows from its type.
struct Lanes {
  double real[kLanes];
  std::int64_t integer[kLanes];
};

class MapEvaluator {
 public:
  MapEvaluator(const LoopForm& form, const std::vector<const Tensor*>& operands,
               std::span<const Tensor> accumulators)
      : form_(form), operands_(operands), accumulators_(accumulators), lanes_(form.dag.nodes().size()) {
    if (Rounding::in_force() && !has_decision(form.dag)) rounding_ = Rounding::in_force();
  }

  /// Writes a region of the result.
  void run(const Region& region, Tensor& result) {
    GC_CHECK(form_.dag.type(region.root) == result.element());
    result_ = &result;
    out_ = result.mutable_bytes().data();
    begin(region, address_of(form_.store, row_major_strides(result.shape())), result.count());
    if (is_copy(region.root)) return copy();
    for_each_block(region, [&] { store(region.root); });
  }

  /// Hands out the values over the whole of the form's extents.
  void run(int root, const std::function<void(const Values&)>& take) {
    const Region whole{form_.ranges(), root};
    const Index position = address_of(form_.identity(), row_major_strides(form_.extents));
    begin(whole, position, element_count(form_.extents));
    const Lanes& values = lanes(root);
    for_each_block(whole, [&] { take({values.real, values.integer, first_of(store_place_), count_}); });
  }

 private:
  /// `store`: where the values go, of `count` places.
  void begin(const Region& region, const Index& store, std::int64_t count) {
    const int roots[] = {region.root};
    order_ = form_.dag.reachable(roots);
    place_.assign(lanes_.size(), -1);
    make_nest(region, store, count);
  }

  template <class F>
  void for_each_block(const Region& region, F finish) {
    const std::size_t last = nest_.extents.size() - 1;
    for_each_row(nest_,
                 [&](const std::vector<std::int64_t>& position, const std::vector<std::int64_t>& bases) {
                   poll_interrupt();
                   bases_ = &bases;
                   for (begin_ = 0; begin_ < nest_.extents[last]; begin_ += kLanes) {
                     count_ = std::min(kLanes, nest_.extents[last] - begin_);
                     if (!is_affine_) set_axes(region, position);
                     for (const int id : order_) compute(id);
                     finish();
                   }
                 });
  }

  const ScalarNode& node(int id) const { return form_.dag[id]; }
  Lanes& lanes(int id) { return lanes_[id]; }

  /// Adds an Affine over all axes of the box; -1 when the index is none.
  int add_affine(const Index& index, const std::vector<Range>& box) {
    const Index simple = recombine(index, box);
    if (!simple.is_affine()) return -1;
    Affine affine;
    affine.base = simple.constant();
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      const std::int64_t step = simple.coefficient_of(static_cast<int>(axis));
      affine.base += step * box[axis].low;
      if (box[axis].high - box[axis].low > 1) affine.steps.push_back(step);
    }
    nest_.affine.push_back(std::move(affine));
    return static_cast<int>(nest_.affine.size()) - 1;
  }

  void make_nest(const Region& region, const Index& store, std::int64_t count) {
    nest_ = {};
    axis_of_.clear();
    for (std::size_t axis = 0; axis < region.box.size(); ++axis) {
      const std::int64_t extent = region.box[axis].high - region.box[axis].low;
      if (extent <= 1) continue;
      nest_.extents.push_back(extent);
      axis_of_.push_back(axis);
    }
    is_affine_ = true;
    for (const int id : order_) {
      const ScalarNode& n = node(id);
      if (n.op == ScalarOp::kLoad) {
        const Tensor& operand = operand_of(n);
        Index address = address_of(n.index, row_major_strides(operand.shape()));
        place_[id] = add_checked(address, region.box, operand.count());
      } else if (n.op == ScalarOp::kIota) {
        place_[id] = add_affine(n.index[0], region.box);
      } else if (n.op == ScalarOp::kAccumulator) {
        const Tensor& accumulator = accumulator_of(n);
        const std::vector<Index> axes = form_.identity();
        const Index address = address_of(std::span(axes).first(accumulator.shape().size()),
                                         row_major_strides(accumulator.shape()));
        place_[id] = add_checked(address, region.box, accumulator.count());
      } else {
        continue;
      }
      is_affine_ = is_affine_ && place_[id] >= 0;
    }
    store_place_ = add_checked(store, region.box, count);
    GC_CHECK(store_place_ >= 0);
    if (is_affine_) merge_axes(nest_);
    if (nest_.extents.empty()) {  // one element
      nest_.extents.push_back(1);
      for (Affine& a : nest_.affine) a.steps.push_back(0);
      axis_of_.push_back(0);
    }
  }

  int add_checked(const Index& address, const std::vector<Range>& box, std::int64_t count) {
    const int place = add_affine(address, box);
    if (place < 0) return place;
    const Affine& affine = nest_.affine[static_cast<std::size_t>(place)];
    std::int64_t low = affine.base, high = affine.base;
    for (std::size_t axis = 0; axis < nest_.extents.size(); ++axis) {
      const std::int64_t reach = affine.steps[axis] * (nest_.extents[axis] - 1);
      (reach < 0 ? low : high) += reach;
    }
    GC_CHECK(low >= 0 && high < count);
    return place;
  }

  const Tensor& operand_of(const ScalarNode& n) const {
    const auto k = static_cast<std::size_t>(n.operand);
    GC_CHECK(k < operands_.size() && operands_[k] && n.index.size() == operands_[k]->shape().size());
    return *operands_[k];
  }

  const Tensor& accumulator_of(const ScalarNode& n) const {
    const auto k = static_cast<std::size_t>(n.operand);
    GC_CHECK(k < accumulators_.size());
    return accumulators_[k];
  }

  bool is_copy(int root) const {
    const ScalarNode& n = node(root);
    const ElementType type = result_->element();
    return is_affine_ && n.op == ScalarOp::kLoad && operand_of(n).element() == type && bits_of(type) >= 8;
  }

  void copy() {
    const std::byte* from = operand_of(node(order_.back())).bytes().data();
    // Steps of the load and of the store, in this order.
    GC_CHECK(nest_.affine.size() == 2 && order_.size() == 1);
    switch (bits_of(result_->element())) {
      case 8:
        return copy_rows<std::uint8_t>(nest_, from, out_);
      case 16:
        return copy_rows<std::uint16_t>(nest_, from, out_);
      case 32:
        return copy_rows<std::uint32_t>(nest_, from, out_);
      default:  // 64, for is_copy() asks for bytes
        return copy_rows<std::uint64_t>(nest_, from, out_);
    }
  }

  // ---- Indices that are not affine, one element at a time ----

  void set_axes(const Region& region, const std::vector<std::int64_t>& position) {
    axes_.resize(region.box.size());
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) axes_[axis] = region.box[axis].low;
    for (std::size_t i = 0; i < position.size(); ++i) axes_[axis_of_[i]] += position[i];
    inner_low_ = axes_.empty() ? Dim() : region.box[axis_of_.back()].low;
  }

  std::int64_t value_of(const Index& index, std::int64_t lane) {
    std::int64_t sum = index.constant();
    for (const Index::Term& t : index.terms()) {
      std::int64_t value = 0;
      switch (t.atom.kind) {
        case IndexAtom::Kind::kAxis:
          value = axes_[t.atom.axis];
          break;
        case IndexAtom::Kind::kLoaded:
          value = lanes(t.atom.axis).integer[lane];
          break;
        case IndexAtom::Kind::kFloorDiv:
          value = floor_div(value_of(*t.atom.inner, lane), t.atom.divisor);
          break;
        case IndexAtom::Kind::kMod: {
          const std::int64_t inner = value_of(*t.atom.inner, lane);
          value = inner - floor_div(inner, t.atom.divisor) * t.atom.divisor;
        }
      }
      sum += t.coefficient * value;
    }
    return sum;
  }

  void set_lane(std::int64_t lane) {
    if (!axes_.empty()) axes_[axis_of_.back()] = inner_low_ + begin_ + lane;
  }

  /// Address of a load at one lane, with every coordinate checked.
  std::int64_t address_at(const ScalarNode& n, const Shape& shape, std::int64_t lane) {
    set_lane(lane);
    std::int64_t address = 0;
    for (std::size_t i = 0; i < n.index.size(); ++i) {
      const std::int64_t at = value_of(n.index[i], lane);
      GC_CHECK(at >= 0 && at < shape[i]);
      address = address * shape[i] + at;
    }
    return address;
  }

  // ---- Nodes ----

  void compute(int id) {
    const ScalarNode& n = node(id);
    Lanes& out = lanes(id);
    switch (n.op) {
      case ScalarOp::kConstant:
        std::fill_n(out.real, count_, n.constant.real);
        std::fill_n(out.integer, count_, n.constant.integer);
        return;
      case ScalarOp::kIota:
        for (std::int64_t i = 0; i < count_; ++i) out.integer[i] = iota(id, i);
        return;
      case ScalarOp::kAccumulator:
        return load(id, accumulator_of(n), out);
      case ScalarOp::kLoad:
        return load(id, operand_of(n), out);
      case ScalarOp::kCast:
        return cast_lanes(n, out);
      case ScalarOp::kBits:
        return bits_lanes(n, out);
      default:
        apply(n, out);
        if (rounding_) rounding_->round_inside(n, {out.real, static_cast<std::size_t>(count_)});
    }
  }

  std::int64_t iota(int id, std::int64_t lane) {
    const int place = place_[id];
    if (place >= 0) return first_of(place) + lane * step_of(place);
    set_lane(lane);
    return value_of(node(id).index[0], lane);
  }

  /// Value and step of an Affine along the block.
  std::int64_t first_of(int place) const {
    return (*bases_)[static_cast<std::size_t>(place)] + begin_ * step_of(place);
  }
  std::int64_t step_of(int place) const { return nest_.affine[static_cast<std::size_t>(place)].steps.back(); }

  template <class F>
  void for_addresses(int id, const Tensor& tensor, F f) {
    const int place = place_[id];
    if (place >= 0) {
      const std::int64_t first = first_of(place), step = step_of(place);
      for (std::int64_t i = 0; i < count_; ++i) f(i, first + i * step);
    } else {
      for (std::int64_t i = 0; i < count_; ++i) f(i, address_at(node(id), tensor.shape(), i));
    }
  }

  template <class T>
  void load_integers(int id, const Tensor& tensor, Lanes& out) {
    const std::byte* base = tensor.bytes().data();
    for_addresses(id, tensor, [&](std::int64_t lane, std::int64_t at) {
      out.integer[lane] = static_cast<std::int64_t>(read<T>(base, at));
    });
  }

  template <class T>
  void load_reals(int id, const Tensor& tensor, Lanes& out) {
    const std::byte* base = tensor.bytes().data();
    for_addresses(id, tensor,
                  [&](std::int64_t lane, std::int64_t at) { out.real[lane] = read<T>(base, at); });
  }

  void load(int id, const Tensor& tensor, Lanes& out) {
    switch (tensor.element()) {
      case ElementType::kFloat32:
        return load_reals<float>(id, tensor, out);
      case ElementType::kFloat64:
        return load_reals<double>(id, tensor, out);
      case ElementType::kInt8:
        return load_integers<std::int8_t>(id, tensor, out);
      case ElementType::kUInt8:
        return load_integers<std::uint8_t>(id, tensor, out);
      case ElementType::kInt32:
        return load_integers<std::int32_t>(id, tensor, out);
      case ElementType::kInt64:
        return load_integers<std::int64_t>(id, tensor, out);
      default:
        for_addresses(id, tensor, [&](std::int64_t lane, std::int64_t at) {
          const Scalar value = tensor.at(at);
          out.real[lane] = value.real;
          out.integer[lane] = value.integer;
        });
    }
  }

  Scalar scalar_of(int id, std::int64_t lane) {
    Scalar value;
    value.type = form_.dag.type(id);
    if (is_float(value.type)) {
      value.real = lanes(id).real[lane];
    } else {
      value.integer = lanes(id).integer[lane];
    }
    return value;
  }

  static void set(Lanes& out, std::int64_t lane, const Scalar& value) {
    out.real[lane] = value.real;
    out.integer[lane] = value.integer;
  }

  void round_lanes(ElementType to, const double* from, Lanes& out) const {
    if (to == ElementType::kFloat32) {
      for (std::int64_t i = 0; i < count_; ++i) out.real[i] = static_cast<float>(from[i]);
    } else {
      for (std::int64_t i = 0; i < count_; ++i) out.real[i] = round_to(to, from[i]);
    }
  }

  void cast_lanes(const ScalarNode& n, Lanes& out) {
    const int argument = n.arguments[0];
    const ElementType from = form_.dag.type(argument);
    if (is_float(n.type) && is_float(from)) return round_lanes(n.type, lanes(argument).real, out);
    if (n.type == ElementType::kFloat32 && from != ElementType::kUInt64) {
      const std::int64_t* integers = lanes(argument).integer;
      for (std::int64_t i = 0; i < count_; ++i) {
        out.real[i] = static_cast<float>(static_cast<double>(integers[i]));
      }
      return;
    }
    if (!is_float(n.type) && !is_float(from) && n.type != ElementType::kBool) {
      const std::int64_t* integers = lanes(argument).integer;
      return wrap_lanes(n.type, out, [integers](std::int64_t i) { return integers[i]; });
    }
    for (std::int64_t i = 0; i < count_; ++i) set(out, i, cast(scalar_of(argument, i), n.type));
  }

  void bits_lanes(const ScalarNode& n, Lanes& out) {
    for (std::int64_t i = 0; i < count_; ++i) set(out, i, bits_as(scalar_of(n.arguments[0], i), n.type));
  }

  /// out = f(lane) at the width of the type.
  template <class F>
  void wrap_lanes(ElementType type, Lanes& out, F f) const {
    switch (type) {
      case ElementType::kInt32:
        for (std::int64_t i = 0; i < count_; ++i) out.integer[i] = static_cast<std::int32_t>(f(i));
        return;
      case ElementType::kInt64:
        for (std::int64_t i = 0; i < count_; ++i) out.integer[i] = f(i);
        return;
      default:
        for (std::int64_t i = 0; i < count_; ++i) out.integer[i] = Scalar::of_integer(type, f(i)).integer;
    }
  }

  /// Sums and products wrap, which unsigned arithmetic may.
  template <class F>
  void apply_integer(const ScalarNode& n, Lanes& out, F f) {
    const std::int64_t* a = lanes(n.arguments[0]).integer;
    const std::int64_t* b = lanes(n.arguments[1]).integer;
    wrap_lanes(n.type, out, [&](std::int64_t i) {
      return static_cast<std::int64_t>(f(static_cast<std::uint64_t>(a[i]), static_cast<std::uint64_t>(b[i])));
    });
  }

  template <class F>
  void apply_real(const ScalarNode& n, Lanes& out, F f) {
    const double* a = lanes(n.arguments[0]).real;
    const double* b = lanes(n.arguments[1]).real;
    for (std::int64_t i = 0; i < count_; ++i) out.real[i] = f(a[i], b[i]);
  }

  void apply(const ScalarNode& n, Lanes& out) {
    const bool is_real = is_float(form_.dag.type(n.arguments[0]));
    if (is_real && n.op == ScalarOp::kAdd)
      return apply_real(n, out, [](double a, double b) { return a + b; });
    if (is_real && n.op == ScalarOp::kSub)
      return apply_real(n, out, [](double a, double b) { return a - b; });
    if (is_real && n.op == ScalarOp::kMul)
      return apply_real(n, out, [](double a, double b) { return a * b; });
    if (is_real && n.op == ScalarOp::kDiv)
      return apply_real(n, out, [](double a, double b) { return a / b; });
    if (is_real && n.op == ScalarOp::kRound) {
      return round_lanes(n.type, lanes(n.arguments[0]).real, out);
    }
    if (!is_real && n.op == ScalarOp::kAdd)
      return apply_integer(n, out, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    if (!is_real && n.op == ScalarOp::kSub)
      return apply_integer(n, out, [](std::uint64_t a, std::uint64_t b) { return a - b; });
    if (!is_real && n.op == ScalarOp::kMul)
      return apply_integer(n, out, [](std::uint64_t a, std::uint64_t b) { return a * b; });
    Scalar arguments[Arguments::kMost];
    GC_CHECK(n.arguments.size() <= std::size(arguments));
    for (std::int64_t i = 0; i < count_; ++i) {
      for (std::size_t k = 0; k < n.arguments.size(); ++k) arguments[k] = scalar_of(n.arguments[k], i);
      set(out, i, evaluate(n.op, std::span<const Scalar>(arguments, n.arguments.size())));
    }
  }

  template <class F>
  void for_results(F f) {
    const std::int64_t first = first_of(store_place_), step = step_of(store_place_);
    for (std::int64_t i = 0; i < count_; ++i) f(first + i * step, i);
  }

  /// The low bits, which are the same of signed and unsigned integers.
  template <class T>
  void store_integers(const Lanes& values) {
    for_results([&](std::int64_t at, std::int64_t i) { write(out_, at, static_cast<T>(values.integer[i])); });
  }

  void store(int root) {
    const Lanes& values = lanes(root);
    const ElementType type = result_->element();
    switch (type) {
      case ElementType::kFloat32:
        return for_results(
            [&](std::int64_t at, std::int64_t i) { write(out_, at, static_cast<float>(values.real[i])); });
      case ElementType::kFloat64:
        return for_results([&](std::int64_t at, std::int64_t i) { write(out_, at, values.real[i]); });
      case ElementType::kInt8:
      case ElementType::kUInt8:
      case ElementType::kBool:
        return store_integers<std::uint8_t>(values);
      case ElementType::kInt16:
      case ElementType::kUInt16:
        return store_integers<std::uint16_t>(values);
      case ElementType::kInt32:
      case ElementType::kUInt32:
        return store_integers<std::uint32_t>(values);
      case ElementType::kInt64:
      case ElementType::kUInt64:
        return store_integers<std::uint64_t>(values);
      default:
        for_results([&](std::int64_t at, std::int64_t i) {
          Scalar value;
          value.type = type;
          value.integer = values.integer[i];
          result_->set(at, is_float(type) ? Scalar::of_real(type, values.real[i]) : value);
        });
    }
  }

  const LoopForm& form_;
  const std::vector<const Tensor*>& operands_;
  std::span<const Tensor> accumulators_;
  Tensor* result_ = nullptr;
  std::byte* out_ = nullptr;
  Rounding* rounding_ = nullptr;
  std::vector<Lanes> lanes_;  // of each node
  std::vector<int> order_;    // nodes of the region's root
  std::vector<int> place_;    // of each leaf: its Affine, -1 when it has none
  int store_place_ = 0;
  Nest nest_;
  bool is_affine_ = true;
  std::vector<std::size_t> axis_of_;  // axes of the nest, where nothing was merged
  std::vector<std::int64_t> axes_;    // position in the region, where indices are not affine
  std::int64_t inner_low_ = 0;
  const std::vector<std::int64_t>* bases_ = nullptr;
  std::int64_t begin_ = 0, count_ = 0;  // the block along the innermost axis of the nest
};

}  // namespace

void evaluate_regions(const LoopForm& form, const std::vector<const Tensor*>& operands,
                      std::span<const Tensor> accumulators, Tensor& result) {
  if (result.count() == 0) return;
  MapEvaluator evaluator(form, operands, accumulators);
  for (const Region& region : form.regions) {
    if (!region.is_empty()) evaluator.run(region, result);
  }
}

void for_each_value(const LoopForm& form, int root, const std::vector<const Tensor*>& operands,
                    std::span<const Tensor> accumulators, const std::function<void(const Values&)>& take) {
  if (element_count(form.extents) > 0) MapEvaluator(form, operands, accumulators).run(root, take);
}

}  // namespace gcompile::ir
