#include "driver/projects/project_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/diagnostics.h"
#include "driver/projects/edit_script.h"
#include "driver/projects/project_files.h"
#include "frontend/files/file_bytes.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Project {
  std::string folder;
  Json manifest;
  std::vector<SchedulePart> parts;
  std::optional<CodeSizes> code;  // where it was built
};

/// The largest of the stacks that the header has for its processors.
std::int64_t stack_bytes(const Project& project) {
  const std::string name = project.manifest["name"];
  const std::string path = (fs::path(project.folder) / "include" / name / (name + ".h")).string();
  const std::string text = frontend::read_file(path, kMostProjectText), word = "_STACK_BYTES ";
  std::int64_t most = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    std::int64_t bytes = 0;
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), bytes);
    most = std::max(most, bytes);
  }
  return most;
}

Project read_project(const std::string& folder) {
  Project out{folder, manifest_of(folder), {}, std::nullopt};
  out.parts = parts_of(out.manifest);
  const std::string library =
      find_library((fs::path(folder) / "build").string(), out.manifest["name"].get<std::string>());
  if (!library.empty()) out.code = code_sizes_of(library);
  return out;
}

std::int64_t number(const Json& object, const char* name) {
  return object.contains(name) ? object[name].get<std::int64_t>() : 0;
}

/// The sum of a member over the calls of the largest schedule, which is the last.
std::int64_t sum_of(const Project& project, const char* member) {
  std::int64_t sum = 0;
  for (const Json& layer : project.parts.back().layers) sum += number(layer, member);
  return sum;
}

struct FigureOf {
  const char* name;
  const char* unit;
  std::optional<std::int64_t> (*of)(const Project&);
};

constexpr FigureOf kFigures[] = {
    {"ram", "bytes",
     [](const Project& p) {
       return std::optional(number(p.manifest, "arena_bytes") + number(p.manifest, "state_bytes") +
                            number(p.manifest, "instance_bytes") + stack_bytes(p));
     }},
    {"arena", "bytes", [](const Project& p) { return std::optional(number(p.manifest, "arena_bytes")); }},
    {"state", "bytes", [](const Project& p) { return std::optional(number(p.manifest, "state_bytes")); }},
    {"stack", "bytes", [](const Project& p) { return std::optional(stack_bytes(p)); }},
    {"weights", "bytes", [](const Project& p) { return std::optional(number(p.manifest, "weights_bytes")); }},
    {"flash", "bytes",
     [](const Project& p) {
       return p.code ? std::optional(p.code->code + p.code->constants + p.code->variables) : std::nullopt;
     }},
    {"code", "bytes", [](const Project& p) { return p.code ? std::optional(p.code->code) : std::nullopt; }},
    {"calls", "",
     [](const Project& p) { return std::optional(static_cast<std::int64_t>(p.parts.back().layers.size())); }},
    {"kernels", "",
     [](const Project& p) { return std::optional(static_cast<std::int64_t>(kernels_of(p.parts).size())); }},
    {"multiply_adds", "", [](const Project& p) { return std::optional(sum_of(p, "multiply_adds")); }},
    {"time", "picoseconds", [](const Project& p) { return std::optional(sum_of(p, "picoseconds")); }},
};

/// A number for every text, the same for equal ones.
class Numbers {
 public:
  std::int64_t of(const std::string& text) {
    return numbers_.try_emplace(text, static_cast<std::int64_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, std::int64_t> numbers_;
};

std::string text_of(const Json& layer, const char* member) { return layer.value(member, std::string()); }

/// The call and the nodes that it computes.
std::string whole_name(const Json& layer) {
  return text_of(layer, "function") + '\n' + text_of(layer, "origins");
}

Json with_step(const Json& layers, std::size_t step) {
  Json out = Json::object();
  out["step"] = step;
  const auto take = [&](const char* member) {
    if (layers[step].contains(member)) out[member] = layers[step][member];
  };
  take("function");
  take("origins");
  for (const char* member : kPlanMembers) take(member);
  return out;
}

/// Whether calls of one name have other plans.
bool differ(const Json& before, const Json& after) {
  return std::any_of(std::begin(kPlanMembers), std::end(kPlanMembers), [&](const char* member) {
    return before.value(member, Json()) != after.value(member, Json());
  });
}

class CallDiff {
 public:
  CallDiff(std::string schedule, const Json& before, const Json& after)
      : schedule_(std::move(schedule)), before_(before), after_(after) {}

  /// First calls of the same name and nodes are matched, then, between these, those of the same name: names of
  /// nodes often count what the exporter wrote before them.
  std::vector<DiffCall> make() && {
    std::vector<std::size_t> removed, added;
    for (const Edit& edit : matched(all(before_.size()), all(after_.size()), whole_name)) {
      if (edit.before && edit.after) {
        close_gap(removed, added);
        match(*edit.before, *edit.after);
      } else if (edit.before) {
        removed.push_back(*edit.before);
      } else {
        added.push_back(*edit.after);
      }
    }
    close_gap(removed, added);
    return std::move(out_);
  }

 private:
  static std::vector<std::size_t> all(std::size_t count) {
    std::vector<std::size_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = i;
    return out;
  }

  std::vector<Edit> matched(const std::vector<std::size_t>& before, const std::vector<std::size_t>& after,
                            std::string (*key)(const Json&)) {
    Numbers numbers;
    std::vector<std::int64_t> a, b;
    for (const std::size_t step : before) a.push_back(numbers.of(key(before_[step])));
    for (const std::size_t step : after) b.push_back(numbers.of(key(after_[step])));
    std::vector<Edit> out;
    for (const Edit& edit : edit_script(a, b)) {
      out.push_back({edit.before ? std::optional(before[*edit.before]) : std::nullopt,
                     edit.after ? std::optional(after[*edit.after]) : std::nullopt});
    }
    return out;
  }

  void close_gap(std::vector<std::size_t>& removed, std::vector<std::size_t>& added) {
    const auto function = [](const Json& layer) { return text_of(layer, "function"); };
    for (const Edit& edit : matched(removed, added, function)) {
      if (edit.before && edit.after) {
        match(*edit.before, *edit.after);
      } else if (edit.before) {
        out_.push_back({schedule_, with_step(before_, *edit.before), nullptr});
      } else {
        out_.push_back({schedule_, nullptr, with_step(after_, *edit.after)});
      }
    }
    removed.clear();
    added.clear();
  }

  void match(std::size_t before, std::size_t after) {
    if (differ(before_[before], after_[after]))
      out_.push_back({schedule_, with_step(before_, before), with_step(after_, after)});
  }

  std::string schedule_;
  const Json &before_, &after_;
  std::vector<DiffCall> out_;
};

std::vector<DiffCall> diff_calls(const Project& before, const Project& after) {
  const Json none = Json::array();
  const auto layers_of = [&](const Project& project, const std::string& id) -> const Json& {
    for (const SchedulePart& part : project.parts) {
      if (part.id == id) return part.layers;
    }
    return none;
  };
  std::vector<std::string> ids;
  for (const Project* project : {&before, &after}) {
    for (const SchedulePart& part : project->parts) {
      if (std::find(ids.begin(), ids.end(), part.id) == ids.end()) ids.push_back(part.id);
    }
  }
  std::vector<DiffCall> out;
  for (const std::string& id : ids) {
    for (DiffCall& call : CallDiff(id, layers_of(before, id), layers_of(after, id)).make())
      out.push_back(std::move(call));
  }
  return out;
}

bool is_text(const std::string& bytes) { return bytes.find('\0') == std::string::npos; }

std::vector<std::int64_t> lines_of(const std::string& text, Numbers& numbers) {
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(numbers.of(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

DiffFile diff_file(const std::string& path, const std::string& before, const std::string& after) {
  DiffFile out{path};
  if (!is_text(before) || !is_text(after)) return out;
  Numbers numbers;
  const std::vector<std::int64_t> old_lines = lines_of(before, numbers), new_lines = lines_of(after, numbers);
  for (const Edit& edit : edit_script(old_lines, new_lines)) {
    out.removed += !edit.after;
    out.added += !edit.before;
  }
  return out;
}

/// Hashes of the files of a project, by path.
std::map<std::string, std::string> files_of(const Project& project) {
  std::map<std::string, std::string> out;
  if (!project.manifest.contains("files")) return out;
  for (const Json& file : project.manifest["files"]) out[file["path"]] = file["sha256"];
  return out;
}

std::vector<DiffFile> diff_files(const Project& before, const Project& after) {
  const std::map<std::string, std::string> old_files = files_of(before), new_files = files_of(after);
  std::map<std::string, std::string> all = old_files;
  all.insert(new_files.begin(), new_files.end());
  const auto read = [](const Project& project, const std::map<std::string, std::string>& files,
                       const std::string& path) {
    const fs::path relative(path);
    const bool leaves =
        relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end();
    if (leaves) {
      refuse_project(fmt::format("the manifest of '{}' names a file outside of it: '{}'",
                                 printable(project.folder), printable(path)),
                     "compare folders that `gcompile MODEL -o DIR` made");
    }
    if (!files.count(path)) return std::string();
    return frontend::read_file((fs::path(project.folder) / path).string(), kMostProjectBytes);
  };
  std::vector<DiffFile> out;
  for (const auto& [path, hash] : all) {
    const auto a = old_files.find(path), b = new_files.find(path);
    if (a != old_files.end() && b != new_files.end() && a->second == b->second) continue;
    out.push_back(diff_file(path, read(before, old_files, path), read(after, new_files, path)));
  }
  return out;
}

}  // namespace

std::vector<std::string> diff_figure_names() {
  std::vector<std::string> out;
  for (const FigureOf& figure : kFigures) out.emplace_back(figure.name);
  return out;
}

ProjectDiff diff_projects(const std::string& before, const std::string& after) {
  std::string read = before;  // whose members are looked at
  try {
    const Project old_project = read_project(before);
    read = after;
    const Project new_project = read_project(after);
    ProjectDiff out;
    for (const FigureOf& figure : kFigures)
      out.figures.push_back({figure.name, figure.unit, figure.of(old_project), figure.of(new_project)});
    out.calls = diff_calls(old_project, new_project);
    out.files = diff_files(old_project, new_project);
    return out;
  } catch (const Json::exception&) {
    refuse_project(fmt::format("the manifest of '{}' is not what was expected: a member is of another kind",
                               printable(read)),
                   "compare folders that `gcompile MODEL -o DIR` made");
  }
}

}  // namespace gcompile
