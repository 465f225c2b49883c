#pragma once
// Random models in which values are cut, joined, turned and written over, as ONNX text: what places them in
// memory, and what computes them together, has to keep them apart.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/codegen/memory/memory_instances.h"

namespace gcompile::testing {

using Sizes = std::vector<std::int64_t>;

/// A model in ONNX text, node by node.
class RandomModel {
 public:
  explicit RandomModel(memory_instances::Dice& dice) : dice_(dice) {
    for (const char* name : {"x", "y"}) values_.push_back({name, {4, 4}});
    const auto count = static_cast<std::size_t>(dice_.roll(8, 20));
    while (values_.size() < count) add_node();
  }

  std::string text() const {
    std::string outputs;
    for (const Value& value : values_) {
      const bool is_read = value.is_read && &value != &values_.back();  // what gave up has read it too
      if (value.is_output || (!is_read && &value >= &values_[2])) {
        outputs += fmt::format("{}float[{}] {}", outputs.empty() ? "" : ", ", fmt::join(value.shape, ","),
                               value.name);
      }
    }
    return fmt::format(
        "g (float[4,4] x, float[4,4] y, float[2,2] w_2, float[4,4] w_4) => ({}) <{}> {{ {} "
        "}}",
        outputs, constants_, nodes_);
  }

 private:
  struct Value {
    std::string name;
    Sizes shape;
    bool is_read = false, is_output = false;
  };

  /// The newest are taken most often.
  const Value& any() {
    const auto count = static_cast<std::int64_t>(values_.size());
    return read(static_cast<std::size_t>(
        dice_.roll(dice_.roll(0, 2) == 0 ? 0 : std::max<std::int64_t>(0, count - 4), count - 1)));
  }
  const Value& read(std::size_t i) {
    values_[i].is_read = true;
    return values_[i];
  }
  template <class F>
  const Value* any_that(const F& fits) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (fits(values_[i].shape)) found.push_back(i);
    }
    if (found.empty()) return nullptr;
    return &read(found[static_cast<std::size_t>(dice_.roll(0, static_cast<std::int64_t>(found.size()) - 1))]);
  }
  std::string constant(const Sizes& shape, const Sizes& numbers) {
    const std::string name = fmt::format("c{}", ++constant_count_);
    constants_ += fmt::format("{}int64[{}] {} = {{{}}}", constants_.empty() ? "" : ", ",
                              fmt::join(shape, ","), name, fmt::join(numbers, ","));
    return name;
  }
  std::string constant(const Sizes& numbers) {
    return constant({static_cast<std::int64_t>(numbers.size())}, numbers);
  }
  std::string add(const std::string& node, Sizes shape) {
    const std::string name = fmt::format("v{}", values_.size());
    nodes_ += name + " = " + node + "\n ";
    values_.push_back({name, std::move(shape)});
    values_.back().is_output = dice_.roll(0, 11) == 0;
    return name;
  }

  void add_node() {
    const Value x = any();
    const auto rank = static_cast<std::int64_t>(x.shape.size());
    const std::int64_t axis = dice_.roll(0, rank - 1);
    switch (dice_.roll(0, 15)) {
      case 0:
        add((dice_.roll(0, 1) == 0 ? "Neg(" : "Abs(") + x.name + ")", x.shape);
        return;
      case 1:
      case 2: {
        const Value* other = any_that([&](const Sizes& shape) { return shape == x.shape; });
        add((dice_.roll(0, 1) == 0 ? "Add(" : "Mul(") + x.name + ", " + other->name + ")", x.shape);
        return;
      }
      case 3:
        return transpose(x);
      case 4:
        return reshape(x);
      case 5:
        return slice(x, axis);
      case 6:
        return join(x, axis);
      case 7:
        add(fmt::format("Softmax<axis = {}>({})", axis, x.name), x.shape);
        return;
      case 8:
        return multiply(x);
      case 9:
        return pad(x, axis);
      case 10:
        return add_to_view(x);
      case 11:
      case 12:
        return mix(x);
      case 13:
        return add_row(x);
      default:
        return scatter(x);
    }
  }

  void transpose(const Value& x) {
    Sizes perm, shape;
    for (std::size_t i = 0; i < x.shape.size(); ++i)
      perm.insert(perm.begin() + dice_.roll(0, static_cast<std::int64_t>(i)), static_cast<std::int64_t>(i));
    for (const std::int64_t from : perm) shape.push_back(x.shape[static_cast<std::size_t>(from)]);
    add(fmt::format("Transpose<perm = [{}]>({})", fmt::join(perm, ","), x.name), shape);
  }

  void reshape(const Value& x) {
    std::int64_t count = 1;
    for (const std::int64_t size : x.shape) count *= size;
    Sizes shape;
    for (const std::int64_t size : {dice_.roll(1, 4), dice_.roll(2, 6)}) {
      if (count % size != 0) continue;
      shape.push_back(size);
      count /= size;
    }
    shape.push_back(count);
    add("Reshape(" + x.name + ", " + constant(shape) + ")", shape);
  }

  void slice(const Value& x, std::int64_t axis) {
    Sizes shape = x.shape;
    std::int64_t& size = shape[static_cast<std::size_t>(axis)];
    const std::int64_t low = dice_.roll(0, size / 2), high = dice_.roll(low + 1, size);
    if (dice_.roll(0, 3) == 0) {
      add("Slice(" + x.name + ", " + constant({-1}) + ", " + constant({-99}) + ", " + constant({axis}) +
              ", " + constant({-1}) + ")",
          x.shape);
      return;
    }
    size = high - low;
    add("Slice(" + x.name + ", " + constant({low}) + ", " + constant({high}) + ", " + constant({axis}) + ")",
        shape);
  }

  void join(const Value& x, std::int64_t axis) {
    const auto at = static_cast<std::size_t>(axis);
    const Value* other = any_that([&](Sizes shape) {
      if (shape.size() != x.shape.size() || shape[at] + x.shape[at] > 8) return false;
      shape[at] = x.shape[at];
      return shape == x.shape;
    });
    if (!other) return;
    Sizes shape = x.shape;
    shape[at] += other->shape[at];
    add(fmt::format("Concat<axis = {}>({}, {})", axis, x.name, other->name), shape);
  }

  void multiply(const Value& x) {
    if (x.shape.size() < 2 || !(x.shape.back() == 2 || x.shape.back() == 4)) return;
    add(fmt::format("MatMul({}, w_{})", x.name, x.shape.back()), x.shape);
  }

  /// Rows more or fewer at either end.
  void pad(const Value& x, std::int64_t axis) {
    const std::int64_t size = x.shape[static_cast<std::size_t>(axis)];
    const std::int64_t before = dice_.roll(-1, 1), behind = dice_.roll(-1, 1);
    if (size + before + behind < 1 || size < 2) return;
    Sizes pads(2 * x.shape.size(), 0), shape = x.shape;
    pads[static_cast<std::size_t>(axis)] = before;
    pads[x.shape.size() + static_cast<std::size_t>(axis)] = behind;
    shape[static_cast<std::size_t>(axis)] += before + behind;
    add("Pad(" + x.name + ", " + constant(pads) + ")", shape);
  }

  /// A row that is computed, with every row.
  void add_row(const Value& x) {
    if (x.shape.size() != 2) return;
    const Sizes shape = {x.shape[1]};
    const std::string most = add("ReduceMax<keepdims = 0>(" + x.name + ", " + constant({0}) + ")", shape);
    values_.back().is_read = true;
    const std::string row = add("Neg(" + most + ")", shape);
    values_.back().is_read = true;
    add(dice_.roll(0, 1) == 0 ? "Add(" + row + ", " + x.name + ")" : "Sub(" + x.name + ", " + row + ")",
        x.shape);
  }

  /// The elements in an order that no steps along axes describe; and perhaps what they are less those in
  /// their own order.
  void mix(const Value& x) {
    if (x.shape.size() != 2 || x.shape[0] == x.shape[1]) return;
    const bool keeps_own = dice_.roll(0, 1) == 0;
    std::string own = x.name;
    if (dice_.roll(0, 1) == 0) {
      own = add("Neg(" + x.name + ")", x.shape);
      values_.back().is_read = true;
    }
    const std::string view = add("Transpose<perm = [1,0]>(" + own + ")", {x.shape[1], x.shape[0]});
    values_.back().is_read = true;
    const std::string mixed = add("Reshape(" + view + ", " + constant(x.shape) + ")", x.shape);
    values_.back().is_read = true;
    add(keeps_own ? "Sub(" + own + ", " + mixed + ")" : "Abs(" + mixed + ")", x.shape);
  }

  /// A difference whose two sides lie in the same memory, or one of them in that of a product.
  void add_to_view(const Value& x) {
    if (x.shape.size() != 2 || x.shape[0] != x.shape[1]) return;
    const std::string view = add("Transpose<perm = [1,0]>(" + x.name + ")", x.shape);
    values_.back().is_read = true;
    std::string other = x.name;
    if (dice_.roll(0, 1) == 0 && x.shape.back() == 4) {
      other = add("MatMul(" + any_that([&](const Sizes& shape) { return shape == x.shape; })->name + ", w_4)",
                  x.shape);
      values_.back().is_read = true;
    }
    add("Sub(" + other + ", " + view + ")", x.shape);
  }

  /// The first row of one value into another, or into a view of it while it is read elsewhere.
  void scatter(const Value& x) {
    const std::string other = any_that([&](const Sizes& shape) { return shape == x.shape; })->name;
    if (dice_.roll(0, 1) == 0) return scatter_into(x.name, x.shape, other);
    std::int64_t count = 1;
    for (const std::int64_t size : x.shape) count *= size;
    const std::string flat = constant({count});
    const std::string view = add("Reshape(" + x.name + ", " + flat + ")", {count});
    values_.back().is_read = true;
    scatter_into(view, {count}, view);
    add("Neg(" + x.name + ")", x.shape);
  }
  void scatter_into(const std::string& into, const Sizes& shape, const std::string& from) {
    Sizes row = shape;
    row[0] = 1;
    const std::string update = add("Slice(" + from + ", " + constant({0}) + ", " + constant({1}) + ")", row);
    values_.back().is_read = true;
    add("ScatterND(" + into + ", " + constant({1, 1}, {dice_.roll(0, shape[0] - 1)}) + ", " + update + ")",
        shape);
  }

  memory_instances::Dice& dice_;
  std::vector<Value> values_;
  std::string nodes_, constants_;
  int constant_count_ = 0;
};

}  // namespace gcompile::testing
