#include "codegen/calls/kernel_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "base/names.h"
#include "ir/forms/expression_words.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

using ir::ScalarNode;
using ir::ScalarOp;

namespace {

constexpr std::size_t kLongestFormula = 28;

bool is_number(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The words of a formula's text: "past_plus_rows" of "past + rows", "height_over_4_times_3" of
/// "3 times height / 4". A factor stands behind its term, for an identifier begins with a letter.
std::string words_of_formula(const std::string& formula) {
  std::vector<std::string> words;
  std::string factor;  // of the term that is being read
  const auto end_term = [&] {
    if (!factor.empty()) words.insert(words.end(), {"times", std::exchange(factor, "")});
  };
  bool is_first = true;  // of its term
  std::istringstream text(formula);
  for (std::string word, times; text >> word; is_first = word == "plus" || word == "minus") {
    if (word[0] == '-' && word.size() > 1) {  // a formula may begin with a sign
      words.push_back("minus");
      word.erase(0, 1);
      is_first = true;
    }
    if (word == "+" || word == "-") {
      end_term();
      word = word == "+" ? "plus" : "minus";
    } else if (is_first && is_number(word) && text >> times) {
      factor = word;
      continue;
    } else if (word == "/") {
      word = "over";
    }
    words.push_back(word);
  }
  end_term();
  return fmt::format("{}", fmt::join(words, "_"));
}

/// The words of a size that is no number.
std::string size_words(ir::Dim size, const ir::Sizes& sizes) {
  ir::DimSpelling spelling;
  spelling.times = " times ";
  spelling.name = [&](int symbol) -> ir::DimSpelling::Name {
    const ir::SizeSymbol& known = sizes.symbols()[static_cast<std::size_t>(symbol)];
    return {identifier_words(known.name, std::string::npos), known.unit};
  };
  spelling.quotient = [&](ir::Dim a, std::int64_t divisor) {
    return fmt::format("floor_{}_over_{}", size_words(a, sizes), divisor);
  };
  spelling.extreme = [](bool is_min, const std::string& a, const std::string& b) {
    return fmt::format("{}_of_{}_and_{}", is_min ? "min" : "max", words_of_formula(a), words_of_formula(b));
  };
  return words_of_formula(ir::to_string(size, spelling));
}

/// A number, the words of a size that a run chooses, or "n" where a formula has many.
std::string size_word(ir::Dim size) {
  if (size.is_constant()) return fmt::format("{}", size.constant());
  const ir::Sizes* sizes = ir::SizesScope::in_force();
  if (sizes == nullptr) return "n";
  std::string words = size_words(size, *sizes);
  const auto is_name = [&](const ir::SizeSymbol& symbol) {
    return identifier_words(symbol.name, std::string::npos) == words;
  };
  const bool is_short = words.size() <= kLongestFormula;
  return is_short || std::any_of(sizes->symbols().begin(), sizes->symbols().end(), is_name) ? words : "n";
}

/// Sizes with "x" between them, from which words are set apart: "3x3", "batch_x_length_x64".
std::string joined_sizes(std::span<const ir::Dim> sizes) {
  std::string out, before;
  for (const ir::Dim size : sizes) {
    const std::string word = size_word(size);
    if (!out.empty()) out += fmt::format("{}x{}", is_number(before) ? "" : "_", is_number(word) ? "" : "_");
    out += word;
    before = word;
  }
  return out;
}

std::vector<ir::Dim> without_ones(std::span<const ir::Dim> shape) {
  std::vector<ir::Dim> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](ir::Dim size) { return size != 1; });
  return out;
}

/// "128x768", without axes of one element; "1" of a single element.
std::string shape_words(std::span<const ir::Dim> shape) {
  const std::vector<ir::Dim> sizes = without_ones(shape);
  return sizes.empty() ? "1" : joined_sizes(sizes);
}

/// How many elements the axes have together: one number, or axis by axis where a run chooses one of them.
std::vector<ir::Dim> counted(std::span<const ir::Dim> shape) {
  ir::Dim count = 1;
  for (const ir::Dim size : shape) count *= size;
  if (count.is_constant()) return {count};
  return without_ones(shape);
}

/// "3x3", and "s2" and "d2" where windows step or spread.
std::string window_words(const ir::Window& window) {
  const auto joined = [](const std::vector<std::int64_t>& numbers) {
    const bool are_alike = std::equal(numbers.begin() + 1, numbers.end(), numbers.begin());
    return are_alike ? fmt::format("{}", numbers.front()) : fmt::format("{}", fmt::join(numbers, "x"));
  };
  std::string out = fmt::format("{}", fmt::join(window.kernel, "x"));
  const auto is_one = [](std::int64_t number) { return number == 1; };
  if (window.kernel.empty()) return out;
  if (!std::all_of(window.strides.begin(), window.strides.end(), is_one)) out += "s" + joined(window.strides);
  if (!std::all_of(window.dilations.begin(), window.dilations.end(), is_one))
    out += "d" + joined(window.dilations);
  return out;
}

void append(std::string& name, const std::string& words) {
  if (!words.empty()) name += "_" + words;
}

/// How a value is moved that nothing is computed of.
std::string movement_word(const ir::NodeView& node, const ir::LoopForm& loops) {
  if (loops.regions.size() > 1) {
    const auto stays = [&](const ir::Region& region) {
      const ScalarNode& root = loops.dag[region.root];
      return root.op == ScalarOp::kLoad && ir::copies_in_place(loops, region, node.shape(root.operand));
    };
    if (std::any_of(loops.regions.begin(), loops.regions.end(), stays)) return "assign";
    const auto is_constant = [&](const ir::Region& region) {
      return loops.dag[region.root].op == ScalarOp::kConstant;
    };
    return std::any_of(loops.regions.begin(), loops.regions.end(), is_constant) ? "pad" : "concat";
  }
  const ScalarNode& load = loops.dag[loops.regions[0].root];
  if (load.op != ScalarOp::kLoad) return load.op == ScalarOp::kConstant ? "fill" : "copy";
  bool turns = false;
  int last = -1;
  for (const ir::Index& index : load.index) {
    if (index.has_loaded()) return "gather";
    const std::optional<int> axis = index.as_axis();
    if (!axis || loops.extents[*axis] == 1) continue;
    turns = turns || *axis < last;
    last = *axis;
  }
  return turns ? "transpose" : "copy";
}

std::string stage_word(const ir::Stage& stage) {
  switch (stage.combine) {
    case ir::Combine::kSum:
      return "sum";
    case ir::Combine::kProduct:
      return "product";
    case ir::Combine::kMax:
      return "max";
    case ir::Combine::kMin:
      return "min";
    case ir::Combine::kArgMax:
      return "arg_max";
    case ir::Combine::kArgMin:
      return "arg_min";
  }
  return "";
}

/// What reductions over some axes, and what follows over all of them, are together.
std::string reduction_words(const ir::LoopForm& loops) {
  std::vector<std::string> before, folds;
  for (const ir::Stage& stage : loops.stages) {
    for (const std::string& word : ir::expression_words(loops, stage.root)) before.push_back(word);
    folds.push_back(stage_word(stage));
  }
  const std::vector<std::string> behind =
      loops.regions.empty() ? std::vector<std::string>{} : ir::expression_words(loops, loops.regions[0].root);
  if (loops.final_over_reduced && ir::has_word(before, "exp") && ir::has_word(folds, "sum"))
    return ir::has_word(behind, "log") ? "log_softmax" : "softmax";
  const bool has_root = ir::has_word(behind, "sqrt") || ir::has_word(behind, "rsqrt");
  if (loops.final_over_reduced && has_root && ir::has_word(folds, "sum"))
    return folds.size() > 1 ? "layer_norm" : "rms_norm";
  const bool divides =
      !loops.final_over_reduced && folds.size() == 1 && ir::has_word(folds, "sum") &&
      (behind == std::vector<std::string>{"mul"} || behind == std::vector<std::string>{"div"});
  if (divides && before.empty()) return "mean";
  std::vector<std::string> words = before;
  words.insert(words.end(), folds.begin(), folds.end());
  words.insert(words.end(), behind.begin(), behind.end());
  return ir::joined_words(std::move(words));
}

/// "int8" where the factors are bytes, and the like.
std::string element_words(const ir::TensorType& type) {
  return is_float(type.element) ? "" : std::string(name_of(type.element));
}

class ContentName {
 public:
  ContentName(const ir::NodeView& node, const ir::Form& form) : node_(node), form_(form) {}

  KernelName make() {
    std::visit([&](const auto& work) { name(work); }, *ir::work_of(form_));
    append(out_.base, element_words(node_.operand(0)));
    if (const auto* contract = std::get_if<ir::ContractForm>(&form_)) {
      std::vector<std::string> words =
          ir::expression_words(contract->epilogue, contract->epilogue.regions[0].root,
                               [&](int operand) { return node_.constant(operand) != nullptr; });
      std::erase(words, "bias");
      // The result of integers is quantised, whatever else becomes of it.
      if (!is_float(node_.operand(0).element)) words = ir::with_quantization(std::move(words));
      if (!is_float(node_.operand(0).element)) std::erase(words, "quantize");
      append(out_.base, ir::joined_words(std::move(words)));
    }
    return std::move(out_);
  }

 private:
  std::span<const ir::Dim> result() const { return node_.result(0).shape; }
  /// Behind batch and channels.
  static std::span<const ir::Dim> spatial(std::span<const ir::Dim> shape) {
    return shape.size() > 2 ? shape.subspan(2) : std::span<const ir::Dim>();
  }
  void at_size(std::span<const ir::Dim> shape) {
    out_.details.push_back("at_" + shape_words(spatial(shape)));
    if (shape.empty() || shape[0] == 1) return;
    const ir::Dim batch = shape[0];
    out_.details.push_back((batch.is_constant() ? "batch_" : "") + size_word(batch));
  }
  ir::Dim channels(int operand) const {
    const ir::Shape& shape = node_.shape(operand);
    return shape.size() > 1 ? shape[1] : ir::Dim(1);
  }

  void name_conv(const char* word, const ir::Window& window, std::int64_t groups, ir::Dim out) {
    const ir::Dim in = channels(0);
    const bool is_depthwise = groups > 1 && in == groups;
    out_.base = fmt::format("{}{}{}", is_depthwise ? "depthwise" : "conv", word, window_words(window));
    out_.base += "_" + (is_depthwise && in == out ? size_word(in) : joined_sizes(std::vector{in, out}));
    if (groups > 1 && !is_depthwise) out_.base += fmt::format("_groups{}", groups);
    at_size(accumulators());
  }
  /// The axes of a contraction's accumulators, whatever its epilogue stores.
  std::span<const ir::Dim> accumulators() const {
    const auto* contract = std::get_if<ir::ContractForm>(&form_);
    return contract ? std::span<const ir::Dim>(contract->epilogue.extents) : result();
  }
  void name(const ir::ConvWork& work) {
    name_conv("", work.window, work.groups, node_.shape(1).empty() ? ir::Dim(1) : node_.shape(1)[0]);
  }
  void name(const ir::ConvTransposeWork& work) {
    const ir::Dim out = node_.shape(1).size() > 1 ? node_.shape(1)[1] * work.groups : ir::Dim(1);
    name_conv("_transpose", work.window, work.groups, out);
  }
  void name(const ir::ProductWork& work) {
    const ir::Shape &a = node_.shape(0), &b = node_.shape(1);
    const ir::Dim depth = a.empty() ? ir::Dim(1) : a.back(), columns = b.empty() ? ir::Dim(1) : b.back();
    std::span<const ir::Dim> batch = b;
    batch = batch.size() > 2 ? batch.first(batch.size() - 2) : std::span<const ir::Dim>();
    const bool has_batch = shape_words(batch) != "1";
    const std::string matrix = joined_sizes(std::vector{depth, columns});
    out_.base = has_batch ? fmt::format("product_{}_of_{}", joined_sizes(counted(batch)), matrix)
                          : "product_" + matrix;
    if (work.block != 0) out_.base += "_packed";
    if (a.size() > 1) {
      const std::span<const ir::Dim> rows = std::span<const ir::Dim>(a).first(a.size() - 1);
      out_.details.push_back("rows_" + (has_batch ? size_word(rows.back()) : joined_sizes(counted(rows))));
    }
  }
  void name(const ir::PoolWork& work) {
    out_.base = fmt::format("{}_pool{}_{}", work.is_max ? "max" : "average", window_words(work.window),
                            size_word(channels(0)));
    at_size(result());
  }
  void name(const ir::AttentionWork& work) {
    std::vector<ir::Dim> sizes = counted(work.heads);
    sizes.push_back(work.size);
    out_.base = fmt::format("{}attention_{}", work.causal ? "causal_" : "", joined_sizes(sizes));
    out_.details = {"rows_" + size_word(work.rows), "columns_" + size_word(work.columns)};
  }
  void name(const ir::RecurrentWork& work) {
    const char* cell = work.cell == ir::RecurrentCell::kLstm  ? "lstm"
                       : work.cell == ir::RecurrentCell::kGru ? "gru"
                                                              : "rnn";
    out_.base =
        fmt::format("{}{}_{}x{}", work.directions > 1 ? "two_way_" : "", cell, work.inputs, work.hidden);
    out_.details = {"steps_" + size_word(work.steps)};
  }
  void name(const ir::TopKWork& work) {
    out_.base = fmt::format("{}_{}_of_{}", work.largest ? "largest" : "smallest", size_word(work.k),
                            shape_words(node_.shape(0)));
  }
  void name(const ir::ScatterWork& work) {
    static constexpr std::string_view kWords[] = {"", "_add", "_mul", "_max", "_min"};
    out_.base = fmt::format("scatter{}_{}", kWords[static_cast<std::size_t>(work.combine)],
                            shape_words(node_.shape(0)));
    out_.details = {"from_" + shape_words(node_.shape(2))};
  }
  void name(const ir::ScanWork& work) {
    const char* const combined = work.is_product ? "product" : "sum";
    out_.base = fmt::format("running_{}_{}", combined, shape_words(node_.shape(0)));
  }
  void name(const ir::LinearAttentionWork& work) {
    out_.base = fmt::format("linear_attention_{}x{}", work.heads, work.size);
    out_.details = {"steps_" + size_word(work.steps)};
  }
  void name(const ir::TreesWork& work) {
    out_.base = fmt::format("trees_{}", work.trees);
    out_.details = {"rows_" + shape_words(std::span(node_.shape(0)).first(1))};
  }
  void name(const ir::SuppressWork& work) {
    out_.base = fmt::format("suppress_{}", shape_words(node_.shape(1)));
    out_.details = {"most_" + size_word(work.most)};
  }

  const ir::NodeView& node_;
  const ir::Form& form_;
  KernelName out_;
};

KernelName loop_name(const ir::NodeView& node, const ir::LoopForm& loops) {
  const std::span<const ir::Dim> extents = loops.extents;
  const auto parallel = static_cast<std::size_t>(loops.parallel);
  if (!loops.is_map()) {
    const std::string rows = shape_words(extents.first(parallel));
    return {fmt::format("{}_{}", reduction_words(loops), shape_words(extents.subspan(parallel))),
            {"rows_" + rows}};
  }
  std::vector<std::string> words;
  for (const ir::Region& region : loops.regions) {
    for (std::string& word : ir::expression_words(loops, region.root)) {
      if (!ir::has_word(words, word)) words.push_back(std::move(word));
    }
  }
  if (loops.regions.size() > 1 && !words.empty()) words.insert(words.begin(), "parts");
  const std::string what = loops.regions.empty()    ? "fill"
                           : words.empty()          ? movement_word(node, loops)
                           : ir::interleaves(loops) ? "interleave"
                                                    : ir::joined_words(words);
  return {fmt::format("{}_{}", what, shape_words(extents)), {}};
}

}  // namespace

std::string size_name(ir::Dim size) {
  const ir::Sizes* sizes = ir::SizesScope::in_force();
  if (sizes == nullptr || size.is_constant()) return "";
  const std::string words = size_words(size, *sizes);
  const bool is_identifier = words[0] < '0' || words[0] > '9';
  return is_identifier && words.size() <= kLongestFormula ? words : "";
}

KernelName copy_name(const ir::Shape& shape, const ir::Shape& from, const ir::Shape& to) {
  const std::vector<std::size_t> before = axes_in_memory(shape, from), behind = axes_in_memory(shape, to);
  if (before == behind) return {"copy_" + shape_words(shape), {}};
  return {"reorder_" + shape_words(shape),
          {fmt::format("{}_to_{}", fmt::join(before, ""), fmt::join(behind, ""))}};
}

KernelName kernel_name(const ir::NodeView& node, const ir::Form& form) {
  if (const auto* loops = std::get_if<ir::LoopForm>(&form)) return loop_name(node, *loops);
  return ContentName(node, form).make();
}

}  // namespace gcompile
