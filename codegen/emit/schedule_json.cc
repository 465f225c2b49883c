#include "codegen/emit/schedule_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "codegen/emit/size_text.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kLineWidth = 110;

class ScheduleWriter {
 public:
  ScheduleWriter(const Program& program, const Schedule& schedule)
      : program_(program), schedule_(schedule), last_(info_of(program.target).last_parameter) {
    for (const Offset& offset : schedule.arena_offsets) element_types_[offset.name] = offset.c_type;
    for (const BufferPart& part : schedule.parts) element_types_[part.name] = part.c_type;
    for (const Offset& offset : program.weight_offsets) element_types_[offset.name] = offset.c_type;
    for (const StateTensor& state : program.states)
      element_types_["state_" + state.c_name] = state.place_type;
  }

  void add(const std::vector<Step>& steps, int depth) {
    for (const Step& step : steps) {
      poll_interrupt();
      switch (step.kind) {
        case Step::Kind::kCall:
          add_call(step, depth);
          break;
        case Step::Kind::kCopy: {
          Json& entry = open(step, depth, "is_copy");
          entry["from"] = argument(step.arguments.at(0));
          entry["to"] = argument(step.arguments.at(1));
          entry["bytes"] = size_of(step.bytes);
          break;
        }
        case Step::Kind::kIf:
          add_if(step, depth);
          break;
        case Step::Kind::kStrips:
          add_strips(step, depth);
          break;
        case Step::Kind::kTrap: {
          Json& entry = open(step, depth, "is_trap");
          entry["reason"] =
              (step.trapped.is_constant() ? "this branch cannot be computed: " : "") + step.comment;
          entry["guard"] = step.trapped.is_constant() ? std::string()
                                                      : fmt::format("if ({} != 0) ", size_of(step.trapped));
          break;
        }
      }
    }
  }

  void finish(Json& out) {
    for (const auto* ports : {&schedule_.inputs, &schedule_.outputs}) {
      for (const Port& port : *ports) {
        if (!port.place.empty()) used_.insert({"arena", ports == &schedule_.inputs ? "inputs" : "outputs"});
      }
    }
    out["steps"] = std::move(steps_);
    for (const char* space : {"arena", "weights", "inputs", "outputs", "state", "sizes"}) {
      out[fmt::format("uses_{}", space)] = used_.count(space) > 0;
    }
    out["uses_memory"] = used_.count("arena") + used_.count("weights") + used_.count("state") > 0;
    out["uses_threads"] = used_.count("threads") > 0;
    // Parameters of the function that runs the schedule.
    out["unused_parameters"] = Json::array();
    if (used_.count("arena") + used_.count("state") + used_.count("threads") == 0) {
      out["unused_parameters"].push_back("memory");
    }
    if (program_.has_bounds && used_.count("sizes") == 0) out["unused_parameters"].push_back("sizes");
    const bool uses_weights = used_.count("weights") > 0;
    if (!uses_weights && !info_of(program_.target).has_device_memory)
      out["unused_parameters"].push_back("payload");
    for (const char* parameter : {"inputs", "outputs"}) {
      if (used_.count(parameter) == 0) out["unused_parameters"].push_back(parameter);
    }
    out["uses_strips"] = used_.count("fixed_strips") + used_.count("open_strips") > 0;
    out["fits_strips"] = used_.count("open_strips") > 0;
    out["has_branches"] = branches_;
  }

 private:
  Json& open(const Step& step, int depth, const char* kind) {
    Json entry = Json::object();
    for (const char* name : {"is_call", "is_checked", "is_copy", "is_if", "is_else", "is_end", "is_trap",
                             "is_strips", "is_strips_end", "is_check", "ends_layer"}) {
      entry[name] = std::string(name) == kind;
    }
    entry["indent"] = std::string(static_cast<std::size_t>(depth) * 2, ' ');
    entry["comment"] = step.comment;
    const std::size_t width =
        kLineWidth - 2 * static_cast<std::size_t>(depth) - std::string_view("// ").size();
    entry["comment_lines"] = Json::array();
    const auto tell = [&](const std::string& text) {
      for (std::string& line : comment_lines(text, width)) entry["comment_lines"].push_back(std::move(line));
    };
    const std::string result = step.kind == Step::Kind::kCall ? "-> " + step.result : "";
    if (step.comment.size() + 1 + result.size() <= width && !result.empty()) {
      tell(step.comment + " " + result);
    } else {
      tell(step.comment);
      tell(result);
    }
    steps_.push_back(std::move(entry));
    return steps_.back();
  }

  void add_call(const Step& step, int depth) {
    Json& entry = open(step, depth, "is_call");
    entry["is_checked"] = step.checked;
    entry["function"] = step.function;
    if (!step.on_host && step.strip_kernel < 0) end_layer(entry);
    std::vector<std::string> arguments;
    for (const Argument& a : step.arguments) arguments.push_back(argument(a));
    for (const ir::Dim size : step.sizes) arguments.push_back(size_of(size));
    if (!step.on_host && (last_.is_for_every_call || step.threaded)) {
      arguments.push_back(step.alone ? "nullptr" : last_.argument);
      if (!step.alone) used_.insert(last_.argument);
    }
    if (step.strip_kernel >= 0) {
      arguments.push_back(fmt::format("strip.begin[{}]", step.strip_kernel));
      arguments.push_back(fmt::format("strip.end[{}]", step.strip_kernel));
    }
    // Continuation lines start below the first argument, as a person would write them.
    std::size_t column = static_cast<std::size_t>(depth) * 2 + step.function.size() + 1;
    if (step.checked) column += std::string_view("if (!").size();
    std::size_t longest = 0;
    for (const std::string& a : arguments) longest = std::max(longest, a.size() + 2);
    std::string text;
    if (column + longest > kLineWidth) {
      column = static_cast<std::size_t>(depth) * 2 + 4;
      text = "\n" + std::string(column, ' ');
    }
    const std::string margin(column, ' ');
    std::size_t width = column;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::size_t size = arguments[i].size() + 2;
      if (i > 0 && width + size > kLineWidth) {
        text += ",\n" + margin;
        width = column;
      } else if (i > 0) {
        text += ", ";
      }
      text += arguments[i];
      width += size;
    }
    entry["arguments"] = std::move(text);
    const std::size_t behind =
        std::string_view(")) return _INDEX_OUT_OF_RANGE;").size() + program_.name.size();
    entry["returns_below"] = step.checked && width - std::string_view(", ").size() + behind > kLineWidth;
  }

  void end_layer(Json& entry) {
    entry["ends_layer"] = true;
    entry["layer"] = layers_++;
  }

  void add_strips(const Step& step, int depth) {
    Json& entry = open(step, depth, "is_strips");
    const std::string name = step.strip_steps.front().function + "_strips";
    const int count = ++strips_[name];
    entry["name"] = count == 1 ? name : fmt::format("{}_{}", name, count);
    entry["images"] = Json::array();
    const std::vector<StripPlan::Size>& sizes = step.strips.sizes;
    for (std::size_t i = 0; i < step.strips.images.size(); ++i) {
      const gcrt::StripImage& image = step.strips.images[i];
      entry["images"].push_back({{"rows", int_of(sizes[i].rows)},
                                 {"span", image.span},
                                 {"stride", image.stride},
                                 {"pad", image.pad},
                                 {"row_bytes", size_of(sizes[i].row_bytes)},
                                 {"held", image.held}});
    }
    entry["count"] = step.strips.images.size();
    entry["is_open"] = step.strips.is_open();
    entry["part_bytes"] = step.strips.part_bytes();
    entry["rows"] = int_of(sizes.back().rows);
    entry["step"] = step.strips.step;
    entry["parts"] = step.strips.parts;
    entry["buffers"] = argument(step.arguments.at(0));
    used_.insert("threads");
    used_.insert(step.strips.is_open() ? "open_strips" : "fixed_strips");
    add(step.strip_steps, depth + 1);
    end_layer(open(step, depth, "is_strips_end"));
  }

  /// A branch that holds nothing, beside one that cannot be computed. What one condition says of several inputs
  /// is one test.
  void add_check(const Step& check, int depth) {
    const std::string condition = argument(check.arguments.at(0));
    Step told = check;
    told.comment = check.else_steps[0].comment;
    const bool is_same =
        !steps_.empty() && steps_.back()["is_check"] && steps_.back()["condition"] == condition;
    Json lines = is_same ? steps_.back()["comment_lines"] : Json::array();
    if (is_same) steps_.erase(steps_.size() - 1);
    Json& entry = open(told, depth, "is_check");
    entry["condition"] = condition;
    for (Json& line : entry["comment_lines"]) lines.push_back(std::move(line));
    entry["comment_lines"] = std::move(lines);
  }

  void add_if(const Step& step, int depth) {
    branches_ = true;
    const auto is_trap = [](const Step& other) {
      return other.kind == Step::Kind::kTrap && other.trapped.is_constant();
    };
    if (step.then_steps.empty() && step.else_steps.size() == 1 && is_trap(step.else_steps[0])) {
      add_check(step, depth);
      return;
    }
    Json& entry = open(step, depth, "is_if");
    entry["condition"] = argument(step.arguments.at(0));
    add(step.then_steps, depth + 1);
    open(step, depth, "is_else");
    add(step.else_steps, depth + 1);
    open(step, depth, "is_end");
  }

  /// "arena[at_relu_1]": a place in a block, as the elements that it is declared of or as others.
  std::string place(const char* block, const Argument& a) {
    const auto declared = element_types_.find(a.place);
    const bool has_its_type = declared != element_types_.end() && declared->second == a.c_type;
    const std::string start = has_its_type ? fmt::format("{}[{}]", block, a.place)
                                           : fmt::format("{}.as<{}>({})", block, a.c_type, a.place);
    if (a.extra == 0) return start;
    if (a.elements) return fmt::format("{} + {}", start, size_of(*a.elements));
    return fmt::format("as<{}>({}, {})", a.c_type, start, size_of(a.extra));
  }

  std::string argument(const Argument& a) {
    switch (a.space) {
      case Argument::Space::kArena:
        used_.insert("arena");
        return place("arena", a);
      case Argument::Space::kPlacedInput:
        return placed("in", schedule_.inputs, a);
      case Argument::Space::kPlacedOutput:
        return placed("out", schedule_.outputs, a);
      case Argument::Space::kState:
        used_.insert("state");
        return place("state", a);
      case Argument::Space::kWeights:
        used_.insert("weights");
        return place("weights", a);
      case Argument::Space::kHost:
        return fmt::format("at<{}>(host, {})", a.c_type,
                           a.extra == 0 ? a.place : fmt::format("{} + {}", a.place, offset_of(a.extra)));
      case Argument::Space::kStrip:
        return fmt::format("strip.image<{}>({})", a.c_type, a.port);
      case Argument::Space::kInput:
        used_.insert("inputs");
        return port("inputs", schedule_.inputs.at(static_cast<std::size_t>(a.port)), a);
      case Argument::Space::kOutput:
        used_.insert("outputs");
        return port("outputs", schedule_.outputs.at(static_cast<std::size_t>(a.port)), a);
    }
    GC_CHECK(false);
  }

  /// "at<float>(in_x, 128)".
  std::string placed(const char* list, const std::vector<Port>& ports, const Argument& a) {
    return fmt::format("at<{}>({}_{}, {})", a.c_type, list, ports.at(static_cast<std::size_t>(a.port)).c_name,
                       offset_of(a.extra));
  }

  std::string size_of(ir::Dim size) {
    if (!size.is_constant()) used_.insert("sizes");
    return size_text(program_, size);
  }

  std::string offset_of(ir::Dim bytes) {
    return bytes.is_constant() ? size_of(bytes) : fmt::format("static_cast<std::size_t>({})", size_of(bytes));
  }

  std::string int_of(ir::Dim size) {
    return size.is_constant() ? size_of(size) : fmt::format("static_cast<int>({})", size_of(size));
  }

  std::string port(const char* list, const Port& port, const Argument& a) {
    const std::string base = fmt::format("{}->{}", list, port.c_name);
    const std::string type = a.c_type.rfind("std::", 0) == 0 ? a.c_type.substr(5) : a.c_type;
    const std::int64_t element_bytes = std::max(bits_of(port.type.element) / 8, 1);  // packed in bytes
    const std::optional<ir::Dim> elements = exact_quotient(a.extra, element_bytes);
    if (type == port.c_type && elements) {
      return a.extra != 0 ? fmt::format("{} + {}", base, size_of(*elements)) : base;
    }
    const char* const_word = std::string_view(list) == "inputs" ? "const " : "";
    return fmt::format("as<{}{}>({}, {})", const_word, a.c_type, base, size_of(a.extra));
  }

  const Program& program_;
  const Schedule& schedule_;
  const LastParameter& last_;
  Json steps_ = Json::array();
  std::map<std::string, std::string> element_types_;  // of places
  std::map<std::string, int> strips_;                 // names of strips so far
  std::set<std::string> used_;
  std::int64_t layers_ = 0;  // written so far, in the order of Program::layers
  bool branches_ = false;
};

}  // namespace

void add_schedule(Json& out, const Program& program, const Schedule& schedule) {
  ScheduleWriter writer(program, schedule);
  writer.add(schedule.steps, 1);
  writer.finish(out);
}

}  // namespace gcompile
