#include "passes/pack_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "ir/interrupt.h"
#include "ir/operator.h"

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

struct Range {
  float low = 0, high = 0;
  float magnitude() const { return std::max(-low, high); }
};

/// Integers of `bits` bits, and their scale.
struct Step {
  float scale;
  int low, high;
  int integer(float value) const {
    return std::clamp(static_cast<int>(std::nearbyint(value / scale)), low, high);
  }
  double difference(float value) const {
    return static_cast<double>(value) - static_cast<double>(static_cast<float>(integer(value)) * scale);
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
      ir::poll_interrupt();
      for (std::int64_t n = 0; n < columns_; ++n) pack(begin, std::min(rows_, begin + kBlock), n);
    }
  }

  const Tensor& integers() const { return integers_; }
  const Tensor& scales() const { return scales_; }
  PackedWeight result(const std::string& name) const {
    return {name,
            rows_,
            columns_,
            (rows_ * columns_ * bits_ + 7) / 8 + scales_.type().bytes(),
            squares_ > 0 ? std::sqrt(squared_differences_ / squares_) : 0,
            largest_};
  }

 private:
  float value(std::int64_t k, std::int64_t n) const {
    return values_[static_cast<std::size_t>(k * columns_ + n)];
  }

  double squared_difference(const Step& step, std::int64_t begin, std::int64_t end, std::int64_t n) const {
    double sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += std::pow(step.difference(value(k, n)), 2);
    return sum;
  }

  /// Of 8 bits symmetric. Of 4 bits symmetric too, or with the element of the largest magnitude as the lowest
  /// integer, which has no counterpart: whichever differs less.
  Step best_step(std::int64_t begin, std::int64_t end, std::int64_t n) const {
    Range range;
    for (std::int64_t k = begin; k < end; ++k) {
      range.low = std::min(range.low, value(k, n));
      range.high = std::max(range.high, value(k, n));
    }
    const int high = (1 << (bits_ - 1)) - 1;
    const float even = range.magnitude() / static_cast<float>(high);
    if (!(even >= 1e-30f)) return {1, 0, 0};
    const Step symmetric{even, -high, high};
    if (bits_ == 8) return symmetric;
    const Step skewed{(range.high > -range.low ? range.high : range.low) / static_cast<float>(-high - 1),
                      -high - 1, high};
    const bool is_better =
        squared_difference(skewed, begin, end, n) < squared_difference(symmetric, begin, end, n);
    return is_better ? skewed : symmetric;
  }

  void pack(std::int64_t begin, std::int64_t end, std::int64_t n) {
    const Step step = best_step(begin, end, n);
    auto* scales = reinterpret_cast<float*>(scales_.mutable_bytes().data());
    auto* integers = reinterpret_cast<std::int8_t*>(integers_.mutable_bytes().data());
    scales[begin / kBlock * columns_ + n] = step.scale;
    for (std::int64_t k = begin; k < end; ++k) {
      integers[k * columns_ + n] = static_cast<std::int8_t>(step.integer(value(k, n)));
      const double difference = step.difference(value(k, n));
      squares_ += static_cast<double>(value(k, n)) * static_cast<double>(value(k, n));
      squared_differences_ += difference * difference;
      largest_ = std::max(largest_, std::fabs(difference));
    }
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

void pack_products(ir::Graph& graph, int bits, std::vector<PackedWeight>& packed, Report& report) {
  std::map<std::uint32_t, ir::ValueId> done;  // by index of the constant; invalid: it stays
  for (const ir::NodeId id : graph.topological_order()) {
    for (ir::Graph& branch : graph.node(id).subgraphs) pack_products(branch, bits, packed, report);
    const ir::ValueId weight = weight_of(graph, id);
    if (!weight.valid()) continue;
    const auto [at, is_new] = done.try_emplace(weight.index);
    const std::string name = graph.value(weight).name;
    if (is_new) {
      const auto stays = [&](const char* reason) {
        report.remarks.push_back({"weight-bits", name, fmt::format("packed: {}", reason), true});
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
      packed.push_back(packer.result(name));
      at->second = add_packed(graph, weight, packer);
    }
    if (at->second.valid()) graph.set_operand(id, 1, at->second);
  }
  graph.erase_unused_constants();
}

}  // namespace

std::vector<PackedWeight> pack_weights(ir::Graph& graph, int bits, Report& report) {
  std::vector<Pass> first;
  for (const Pass& pass : pipeline()) {
    if (pass.name == "captures" || pass.name == "fold" || pass.name == "decompose") first.push_back(pass);
  }
  run_passes(graph, first, {});
  std::vector<PackedWeight> packed;
  pack_products(graph, bits, packed, report);
  return packed;
}

}  // namespace gcompile::passes
