#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/interrupt.h"
#include "ir/forms/form.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Tensor;

constexpr std::int64_t kBlock = 32;  // rows that share a scale

/// The weight that a node multiplies by, as operand 1; invalid: it is no product by a matrix of floats.
ir::ValueId weight_of(const ir::Graph& graph, ir::NodeId id) {
  if (!graph.node(id).op->lower || graph.node(id).operands.size() != 2) return {};
  const ir::ValueId weight = graph.node(id).operands[1];
  if (!weight.valid() || !graph.constant(weight)) return {};
  const ir::TensorType& type = graph.value(weight).type;
  if (type.element != ElementType::kFloat32 || type.rank() != 2 || type.count() == 0) return {};
  const ir::Form form = ir::form_of(graph, id);
  const ir::Work* work = ir::work_of(form);
  return work && std::holds_alternative<ir::ProductWork>(*work) ? weight : ir::ValueId{};
}

/// Integers of `bits` bits, and their scale.
struct Step {
  float scale = 1;
  float low = 0, high = 0;
  /// The nearest; of two the even one, as what is added has no fraction.
  float integer(float value) const {
    constexpr float kWhole = 12582912;  // 1.5 * 2^23
    return std::clamp((value / scale + kWhole) - kWhole, low, high);
  }
  double difference(float value) const {
    return static_cast<double>(value) - static_cast<double>(integer(value) * scale);
  }
};

/// Packs one matrix.
class Packer {
 public:
  Packer(const Tensor& weights, int bits)
      : bits_(bits),
        rows_(weights.shape()[0]),
        columns_(weights.shape()[1]),
        values_(static_cast<std::size_t>(weights.count())),
        integers_(ir::TensorType{ElementType::kInt8, weights.shape()}),
        scales_(ir::TensorType{ElementType::kFloat32, {ir::ceil_div(rows_, kBlock), columns_}}) {
    std::memcpy(values_.data(), weights.bytes().data(), values_.size() * sizeof(float));
  }

  bool is_finite() const {
    return std::all_of(values_.begin(), values_.end(), [](float v) { return std::isfinite(v); });
  }

  void run() {
    for (std::int64_t begin = 0; begin < rows_; begin += kBlock) {
      poll_interrupt();
      pack(begin, std::min(rows_, begin + kBlock));
    }
  }

  const Tensor& integers() const { return integers_; }
  const Tensor& scales() const { return scales_; }
  ir::PackedWeight result(const std::string& name) const {
    return {name,
            rows_,
            columns_,
            (rows_ * columns_ * bits_ + 7) / 8 + scales_.type().bytes(),
            squares_ > 0 ? std::sqrt(squared_differences_ / squares_) : 0,
            largest_};
  }

 private:
  /// Calls f(column, value) for the elements of rows [begin, end).
  template <class F>
  void for_each(std::int64_t begin, std::int64_t end, F f) const {
    const float* value = values_.data() + begin * columns_;
    for (std::int64_t k = begin; k < end; ++k) {
      for (std::size_t n = 0; n < static_cast<std::size_t>(columns_); ++n) f(n, *value++);
    }
  }

  std::vector<double> squared_differences(const std::vector<Step>& steps, std::int64_t begin,
                                          std::int64_t end) const {
    std::vector<double> sums(steps.size());
    for_each(begin, end, [&](std::size_t n, float value) {
      const double difference = steps[n].difference(value);
      sums[n] += difference * difference;
    });
    return sums;
  }

  /// The steps of each column. 8 bits are symmetric; 4 bits are too, or have the element of the largest
  /// magnitude as the lowest integer, which has no counterpart: whichever differs less.
  std::vector<Step> best_steps(std::int64_t begin, std::int64_t end) const {
    std::vector<float> low(static_cast<std::size_t>(columns_)), high(low.size());
    for_each(begin, end, [&](std::size_t n, float value) {
      low[n] = std::min(low[n], value);
      high[n] = std::max(high[n], value);
    });
    const auto most = static_cast<float>((1 << (bits_ - 1)) - 1);
    std::vector<Step> steps(low.size()), skewed(low.size());
    for (std::size_t n = 0; n < steps.size(); ++n) {
      const float scale = std::max(-low[n], high[n]) / most;
      if (!(scale >= 1e-30f)) continue;  // all are 0
      steps[n] = {scale, -most, most};
      skewed[n] = {(high[n] > -low[n] ? high[n] : low[n]) / (-most - 1), -most - 1, most};
    }
    if (bits_ == 8) return steps;
    const std::vector<double> even = squared_differences(steps, begin, end),
                              other = squared_differences(skewed, begin, end);
    for (std::size_t n = 0; n < steps.size(); ++n) {
      if (other[n] < even[n]) steps[n] = skewed[n];
    }
    return steps;
  }

  void pack(std::int64_t begin, std::int64_t end) {
    const std::vector<Step> steps = best_steps(begin, end);
    auto* scale = reinterpret_cast<float*>(scales_.mutable_bytes().data()) + begin / kBlock * columns_;
    auto* integer = reinterpret_cast<std::int8_t*>(integers_.mutable_bytes().data()) + begin * columns_;
    for (const Step& step : steps) *scale++ = step.scale;
    for_each(begin, end, [&](std::size_t n, float value) {
      *integer++ = static_cast<std::int8_t>(steps[n].integer(value));
      const double difference = steps[n].difference(value);
      squares_ += static_cast<double>(value) * static_cast<double>(value);
      squared_differences_ += difference * difference;
      largest_ = std::max(largest_, std::fabs(difference));
    });
  }

  int bits_;
  std::int64_t rows_, columns_;
  std::vector<float> values_;
  Tensor integers_, scales_;
  double squares_ = 0, squared_differences_ = 0, largest_ = 0;
};

/// The packed weight made floats again.
ir::ValueId add_packed(ir::Graph& graph, ir::ValueId weight, const Packer& packer) {
  const std::string name = graph.value(weight).name;
  const ir::Operator& op = ir::operator_named("DequantizeLinear");
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{0});
  attributes.set("block_size", kBlock);
  ir::complete_attributes(op, attributes);
  const ir::ValueId integers = graph.add_constant(packer.integers(), name);
  const ir::ValueId scales = graph.add_constant(packer.scales(), name);
  const ir::NodeId id = graph.add_node(op, {integers, scales}, std::move(attributes), 1, name);
  ir::infer_node(graph, id);
  return graph.node(id).results[0];
}

void pack_products(ir::Graph& graph, int bits, Prepared& prepared) {
  std::map<std::uint32_t, ir::ValueId> done;  // by index of the constant; invalid: it stays
  for (const ir::NodeId id : graph.topological_order()) {
    for (ir::Graph& branch : graph.node(id).subgraphs) pack_products(branch, bits, prepared);
    const ir::ValueId weight = weight_of(graph, id);
    if (!weight.valid()) continue;
    const auto [at, is_new] = done.try_emplace(weight.index);
    const std::string name = graph.value(weight).name;
    if (is_new) {
      const auto stays = [&](const char* reason) {
        prepared.report.remarks.push_back({"weight-bits", name, fmt::format("packed: {}", reason), true});
      };
      const Tensor& tensor = *graph.constant(weight);
      if (tensor.shape()[0] < kBlock) {
        stays("fewer rows than a block");
        continue;
      }
      Packer packer(tensor, bits);
      if (!packer.is_finite()) {
        stays("an element is not finite");
        continue;
      }
      packer.run();
      prepared.packed_weights.push_back(packer.result(name));
      at->second = add_packed(graph, weight, packer);
    }
    if (at->second.valid()) graph.set_operand(id, 1, at->second);
  }
  graph.erase_unused_constants();
}

}  // namespace

void pack_weights(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared) {
  pack_products(graph, options.weight_bits, prepared);
}

}  // namespace gcompile::passes
