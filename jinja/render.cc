#include "jinja/render.h"

#include <stdexcept>
#include <string_view>

#include "base/interrupt.h"
#include "jinja/filters.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;
using Expression = TemplateExpression;

constexpr int kMaxIncludeDepth = 32;

/// A name bound by a for; `value` is null where the name is hidden.
struct Binding {
  std::string_view name;
  const Json* value;
};

class Renderer {
 public:
  Renderer(const std::map<std::string, std::unique_ptr<Template>>& templates, const Json& data)
      : templates_(templates), data_(data) {}

  std::string run(const Template& root) {
    render_file(root);
    return std::move(output_);
  }

 private:
  [[noreturn]] void fail(TemplatePosition position, const std::string& message) const {
    throw_template_error(current_->name, position, message);
  }

  void render_file(const Template& file) {
    const Template* includer = current_;
    current_ = &file;
    render_body(file.body);
    current_ = includer;
  }

  void render_body(const TemplateBody& body) {
    for (const TemplateNode& node : body) {
      std::visit([&](const auto& content) { render(content, node.position); }, node.content);
    }
  }

  void render(const TemplateText& node, TemplatePosition) { output_ += node.text; }

  void render(const TemplateOutput& node, TemplatePosition) {
    Json storage;
    const Json& value = evaluate(node.value, storage);
    if (!value.is_string() && !value.is_number_integer()) {
      fail(node.value.position, "only strings and integers can be printed; this is " + describe_type(value));
    }
    output_ += indent_lines(template_text_of(value), node.indentation);
  }

  void render(const TemplateFor& node, TemplatePosition) {
    Json storage;
    const Json& list = evaluate(node.list, storage);
    if (!list.is_array()) fail(node.list.position, "for needs a list; this is " + describe_type(list));
    Json loop;
    bindings_.push_back({"loop", &loop});
    bindings_.push_back({node.variable, nullptr});
    for (std::size_t i = 0; i < list.size(); ++i) {
      poll_interrupt();
      loop = {{"first", i == 0}, {"last", i + 1 == list.size()}, {"index", i + 1}, {"index0", i}};
      bindings_.back().value = &list[i];
      render_body(node.body);
    }
    bindings_.resize(bindings_.size() - 2);
  }

  void render(const TemplateIf& node, TemplatePosition) {
    for (const TemplateBranch& branch : node.branches) {
      if (branch.condition.empty() || is_true(branch.condition[0])) {
        render_body(branch.body);
        return;
      }
    }
  }

  void render(const TemplateInclude& node, TemplatePosition position) {
    if (include_depth_ == kMaxIncludeDepth) fail(position, "includes are nested too deeply");
    ++include_depth_;
    bindings_.push_back({"loop", nullptr});
    render_file(*templates_.at(node.name));
    bindings_.pop_back();
    --include_depth_;
  }

  bool is_true(const Expression& expression) {
    Json storage;
    const Json& value = evaluate(expression, storage);
    if (!value.is_boolean())
      fail(expression.position, "a condition needs a boolean; this is " + describe_type(value));
    return value.get<bool>();
  }

  /// The value, inside the data or, when it is computed, in `storage`.
  const Json& evaluate(const Expression& expression, Json& storage) {
    switch (expression.kind) {
      case Expression::Kind::kName:
        return look_up(expression);
      case Expression::Kind::kString:
        return storage = expression.text;
      case Expression::Kind::kInteger:
        return storage = expression.integer;
      case Expression::Kind::kBoolean:
        return storage = expression.integer != 0;
      case Expression::Kind::kNot:
        return storage = !is_true(expression.operands[0]);
      case Expression::Kind::kAnd:
      case Expression::Kind::kOr:
        return storage = evaluate_chain(expression);
      case Expression::Kind::kFilter:
        return storage = apply_filter(expression);
    }
    fail(expression.position, "unknown kind of expression");
  }

  /// Stops at the first operand that decides, as jinja2 does: `has_bias and bias.is_constant` is legal.
  bool evaluate_chain(const Expression& expression) {
    const bool deciding = expression.kind == Expression::Kind::kOr;
    for (const Expression& operand : expression.operands) {
      if (is_true(operand) == deciding) return deciding;
    }
    return !deciding;
  }

  std::string apply_filter(const Expression& expression) {
    Json storage;
    const Json& input = evaluate(expression.operands[0], storage);
    std::vector<Json> arguments;
    for (std::size_t i = 1; i < expression.operands.size(); ++i) {
      Json argument_storage;
      arguments.push_back(evaluate(expression.operands[i], argument_storage));
    }
    try {
      return find_template_filter(expression.text)->apply(input, arguments);
    } catch (const std::invalid_argument& problem) {
      fail(expression.position, "filter '" + expression.text + "': " + problem.what());
    }
  }

  const Json& look_up(const Expression& expression) {
    const Json* value = look_up_first(expression.path[0]);
    if (value == nullptr) fail(expression.position, "unknown name '" + expression.path[0] + "'");
    for (std::size_t i = 1; i < expression.path.size(); ++i) {
      const std::string& member = expression.path[i];
      if (!value->is_object()) {
        fail(expression.position, "no member '" + member + "' in '" + expression.text +
                                      "': what stands before it is " + describe_type(*value));
      }
      const auto found = value->find(member);
      if (found == value->end())
        fail(expression.position, "unknown member '" + member + "' in '" + expression.text + "'");
      value = &*found;
    }
    return *value;
  }

  const Json* look_up_first(const std::string& name) const {
    for (auto binding = bindings_.rbegin(); binding != bindings_.rend(); ++binding) {
      if (binding->name == name) return binding->value;
    }
    const auto found = data_.find(name);
    return found == data_.end() || name == "loop" ? nullptr : &*found;
  }

  const std::map<std::string, std::unique_ptr<Template>>& templates_;
  const Json& data_;
  const Template* current_ = nullptr;
  std::vector<Binding> bindings_;
  int include_depth_ = 0;
  std::string output_;
};

}  // namespace

std::string render_template(const std::map<std::string, std::unique_ptr<Template>>& templates,
                            const Template& root, const Json& data) {
  return Renderer(templates, data).run(root);
}

}  // namespace gcompile
