#include "codegen/kinds/batch_items.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile {

BatchItems::BatchItems(const Product& product, std::int64_t parts, SizeParameters& sizes)
    : product_(product), parts_(parts), sizes_(sizes), entries_(product.rank(), 1) {
  for (const std::size_t axis : product.axes.batch) entries_[axis] = product.out[axis];
}

std::string BatchItems::of_part(const std::string& scratch, ir::Dim elements) const {
  return is_one() ? scratch : fmt::format("{} + {} * part", scratch, sizes_(elements));
}

HeadOffset BatchItems::offset(const ir::Shape& along) const { return moved(along, entries_, sizes_); }

std::string BatchItems::a() const {
  ir::Shape along;
  for (std::size_t axis = 0; axis < product_.rank(); ++axis) along.push_back(product_.along_a(axis));
  return "a" + offset(along).text;
}

std::string BatchItems::b(const ir::Shape& strides) const {
  ir::Shape along;
  for (std::size_t axis = 0; axis < product_.rank(); ++axis) along.push_back(product_.along_b(strides, axis));
  return "b" + offset(along).text;
}

void BatchItems::open(KernelCall& out, CodeText& code, const std::string& items,
                      const std::vector<int>& named, const ir::Shape& b_strides, bool has_scratch) const {
  const char* const threads = threads_argument(out);
  if (is_one()) {
    code.open(
        fmt::format("parallel_for({}, {}, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{", threads, items));
    return;
  }
  std::set<int> axes(named.begin(), named.end());
  for (const std::size_t axis : product_.axes.batch) {
    const bool moves = product_.along_a(axis) != 0 || product_.along_b(b_strides, axis) != 0;
    if (moves && product_.out[axis] != 1) axes.insert(static_cast<int>(axis));
  }
  const std::string entries = sizes_(ir::element_count(entries_));
  const std::string loop =
      fmt::format("{}, /*entries*/ {}, {}", threads, entries, items.empty() ? "/*of each*/ 1" : items);
  const std::string of_entry = fmt::format(
      "std::ptrdiff_t{}, {}", axes.empty() ? "" : " entry",
      items.empty() ? "std::ptrdiff_t, std::ptrdiff_t" : "std::ptrdiff_t begin, std::ptrdiff_t end");
  if (has_scratch) {
    code.open(fmt::format("parallel_entries_in_parts({}, /*parts*/ {}, [&](std::ptrdiff_t part, {}) {{", loop,
                          parts_, of_entry));
  } else {
    code.open(fmt::format("parallel_entries({}, [&]({}) {{", loop, of_entry));
  }
  declare_coordinates(code, "entry", axes, entries_, sizes_);
}

std::int64_t batch_parts(const ir::Problem& problem, std::int64_t bytes, std::int64_t picoseconds,
                         const Machine& machine) {
  constexpr std::int64_t kFew = 4;
  if (Product(problem).axes.batch.empty() || machine.smallest_scratch || bytes == 0) return 1;
  const std::int64_t result = ir::element_count(problem.results[0].shape) * 4;
  return std::clamp<std::int64_t>(std::min(std::max(kFew, result / bytes), picoseconds / machine.least_item),
                                  1, machine.cores);
}

}  // namespace gcompile
