#include "codegen/packing/tree_nodes.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

/// Cells of gcompile.Trees' operand 1 (ir/ops/tree_tables.h): rows of trees, then of nodes.
class Table {
 public:
  Table(const ir::Tensor& table, std::int64_t trees) : table_(table), trees_(trees) {}
  std::int64_t of_tree(std::int64_t tree, int column) const { return table_.int_at(tree * 4 + column); }
  std::int64_t of_node(std::int64_t node, int column) const {
    return table_.int_at((trees_ + node) * 4 + column);
  }
  double threshold(std::int64_t node) const { return std::bit_cast<double>(of_node(node, 0)); }

 private:
  const ir::Tensor& table_;
  std::int64_t trees_;
};

/// Members of a struct, one behind the other, each at a multiple of its size.
class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}
  template <class T>
  void put(T value) {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::memcpy(out_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  void put(std::int64_t bytes, std::int64_t value) {
    if (bytes == 1) return put(static_cast<std::uint8_t>(value));
    if (bytes == 2) return put(static_cast<std::uint16_t>(value));
    put(static_cast<std::int32_t>(value));
  }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

}  // namespace

TreeNodeType::TreeNodeType(const ir::Problem& problem) {
  const auto& work = std::get<ir::TreesWork>(problem.work);
  const bool is_double = problem.operands[0].element == ir::ElementType::kFloat64;
  threshold = is_double ? "double" : "float";
  threshold_bytes = is_double ? 8 : 4;
  const std::int64_t columns = ir::typical(problem.shape(0)[1]);
  constexpr std::int64_t kBytes = 256, kWords = 65536;
  const bool is_small = columns <= kWords && work.most_nodes <= kWords;
  feature = is_small ? "std::uint16_t" : "std::int32_t";
  feature_bytes = is_small ? 2 : 4;
  const bool has_bytes = is_small && work.most_nodes <= kBytes;
  child = has_bytes ? "std::uint8_t" : feature;
  child_bytes = has_bytes ? 1 : feature_bytes;
}

std::string TreeNodeType::text() const {
  return fmt::format("TreeNode<{}, {}, {}>", threshold, feature, child);
}

std::int64_t TreeNodeType::bytes() const {
  const std::int64_t members = threshold_bytes + feature_bytes + 2 * child_bytes;
  return (members + threshold_bytes - 1) / threshold_bytes * threshold_bytes;
}

Packing pack_tree_rows(const ir::Tensor& table, std::int64_t trees) {
  Packing packing;
  packing.source = table;
  packing.format = fmt::format("rows of {} trees", trees);
  packing.bytes = trees * 16;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const Table cells(source, trees);
    for (std::int64_t tree = 0; tree < trees; ++tree) {
      Writer writer(out.subspan(static_cast<std::size_t>(tree * 16), 16));
      for (int column = 0; column < 4; ++column)
        writer.put(static_cast<std::int32_t>(cells.of_tree(tree, column)));
    }
  };
  return packing;
}

Packing pack_tree_nodes(const ir::Tensor& table, const ir::TreesWork& work, const TreeNodeType& type) {
  Packing packing;
  packing.source = table;
  packing.format = fmt::format("{} nodes of {} trees, {} more, as {}", work.nodes, work.trees,
                               work.most_leaves, type.text());
  packing.bytes = (work.nodes + work.most_leaves) * type.bytes();
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const Table cells(source, work.trees);
    for (std::int64_t node = 0; node < work.nodes; ++node) {
      Writer writer(
          out.subspan(static_cast<std::size_t>(node * type.bytes()), static_cast<std::size_t>(type.bytes())));
      if (type.threshold_bytes == 8) {
        writer.put(cells.threshold(node));
      } else {
        writer.put(static_cast<float>(cells.threshold(node)));
      }
      writer.put(type.feature_bytes, cells.of_node(node, 1));
      writer.put(type.child_bytes, cells.of_node(node, 2));
      writer.put(type.child_bytes, cells.of_node(node, 3));
    }
  };
  return packing;
}

namespace {

/// The leaves that a node of a tree reaches, as bits; children stand behind their parents.
std::vector<std::uint64_t> leaves_below(const Table& cells, std::int64_t first, std::int64_t inner) {
  std::vector<std::uint64_t> below(static_cast<std::size_t>(inner), 0);
  const auto of = [&](std::int64_t child) {
    return child < inner ? below[static_cast<std::size_t>(child)] : std::uint64_t{1} << (child - inner);
  };
  for (std::int64_t node = inner - 1; node >= 0; --node) {
    below[static_cast<std::size_t>(node)] =
        of(cells.of_node(first + node, 2)) | of(cells.of_node(first + node, 3));
  }
  return below;
}

}  // namespace

Packing pack_tree_masks(const ir::Tensor& table, const ir::TreesWork& work, int words) {
  Packing packing;
  packing.source = table;
  packing.format = fmt::format("{} nodes of {} trees with masks of {} words", work.nodes, work.trees, words);
  const std::int64_t bytes = 8 + 4 * words;
  packing.bytes = work.nodes * bytes;
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    const Table cells(source, work.trees);
    for (std::int64_t tree = 0; tree < work.trees; ++tree) {
      const std::int64_t first = cells.of_tree(tree, 0), inner = cells.of_tree(tree, 1);
      const std::vector<std::uint64_t> below = leaves_below(cells, first, inner);
      for (std::int64_t node = 0; node < inner; ++node) {
        const std::int64_t child = cells.of_node(first + node, 2);
        const std::uint64_t left =
            child < inner ? below[static_cast<std::size_t>(child)] : std::uint64_t{1} << (child - inner);
        Writer writer(
            out.subspan(static_cast<std::size_t>((first + node) * bytes), static_cast<std::size_t>(bytes)));
        writer.put(static_cast<float>(cells.threshold(first + node)));
        writer.put(static_cast<std::int32_t>(cells.of_node(first + node, 1)));
        for (int word = 0; word < words; ++word) writer.put(static_cast<std::uint32_t>(~left >> (32 * word)));
      }
    }
  };
  return packing;
}

}  // namespace gcompile
