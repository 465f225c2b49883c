#include "codegen/emit/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/diagnostics.h"
#include "base/sha256.h"
#include "codegen/emit/embedded.h"
#include "codegen/emit/file_marks.h"
#include "codegen/emit/kernel_files.h"
#include "codegen/emit/schedule_tables_json.h"
#include "jinja/engine.h"
#include "jinja/line_breaks.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kTemplates = "templates/";
constexpr std::string_view kRuntime = "runtime_stub/";

std::optional<std::string> load_template(const std::string& name) {
  const EmbeddedFile* file = find_embedded_file(fmt::format("{}{}", kTemplates, name));
  if (file == nullptr) return std::nullopt;
  return std::string(file->contents);
}

/// The headers that `text` includes from the runtime.
std::vector<std::string> included_by(std::string_view text) {
  constexpr std::string_view kInclude = "#include \"gcrt/";
  std::vector<std::string> out;
  for (std::size_t at = text.find(kInclude); at != std::string_view::npos; at = text.find(kInclude, at + 1)) {
    const std::size_t begin = at + kInclude.size() - std::string_view("gcrt/").size();
    const std::size_t end = text.find('"', begin);
    GC_CHECK(end != std::string_view::npos);
    out.emplace_back(text.substr(begin, end - begin));
  }
  return out;
}

/// The weights file as 32-bit words in hexadecimal, eight to a line.
std::string words_of(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() / 4 * 12);
  const std::size_t words = (bytes.size() + 3) / 4;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 4 && 4 * i + k < bytes.size(); ++k) {
      word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[4 * i + k])) << (8 * k);
    }
    text += fmt::format("0x{:08x}u,", word);
    text += i % 8 == 7 || i + 1 == words ? '\n' : ' ';
  }
  return text;
}

class Emitter {
 public:
  Emitter(const Program& program, const EmitOptions& options)
      : program_(program),
        target_(info_of(program.target)),
        options_(options),
        engine_(load_template),
        data_(program_json(program, options)) {}

  FileSet run() {
    const std::string& name = program_.name;
    data_["mark_name"] = kMarkNameStandIn;
    data_["mark"] = kMarkStandIn;
    add_build_files();
    render("interface/model.h.j2", fmt::format("include/{0}/{0}.h", name));
    render(of_target("model.hpp.j2"), fmt::format("include/{0}/{0}.hpp", name));
    add_schedules();
    if (target_.has_levels) {
      render(of_target(fmt::format("api.{}.j2", target_.source_suffix)),
             source_path(fmt::format("{}_api", name)));
    }
    render("library/internal.h.j2", fmt::format("src/{}_internal.h", name));
    if (target_.has_thread_pool) {
      render(of_target("threads.cpp.j2"), fmt::format("src/{}_threads.cpp", name));
    }
    add_kernels();
    render(of_target("support.h.j2"), "apps/support.h");
    render("programs/run.cpp.j2", "apps/run.cpp");
    render("programs/bench.cpp.j2", fmt::format("apps/bench.{}", target_.source_suffix));
    add_timed_schedules();
    if (!target_.has_device_memory) render(of_target("profile.cpp.j2"), "apps/profile.cpp");
    if (!options_.golden.empty()) {
      render("programs/selftest.cpp.j2", "tests/selftest.cpp");
      for (std::size_t i = 0; i < options_.golden.size(); ++i) {
        files_.add(fmt::format("data/{}.golden.bin", stem_of(i)), options_.golden[i]);
      }
    }
    add_runtime();
    settle_texts();
    add_weights();
    for (const std::string& pack : options_.packs) add_pack(pack);
    render(of_target("README.md.j2"), "README.md");
    render("report/report.html.j2", "report.html");
    add_manifest();
    return std::move(files_);
  }

 private:
  /// "cuda/README.md.j2".
  std::string of_target(std::string_view name) const { return fmt::format("{}/{}", target_.name, name); }
  /// src/NAME.cpp, or .cu.
  std::string source_path(const std::string& stem) const {
    return fmt::format("src/{}.{}", stem, target_.source_suffix);
  }
  void render(const std::string& from, const std::string& to) { render(from, to, data_); }
  void render(const std::string& from, const std::string& to, const Json& data) {
    std::string text = with_short_lines(to, engine_.render(from, data));
    if (is_settled_) {
      files_.add(to, std::move(text));
    } else {
      texts_.emplace_back(to, std::move(text));
    }
  }

  /// The digest of the code that reads weights, which decides which weights it can read: they may be
  /// exchanged as long as the schedule and the kernels stay the same to the letter.
  std::string structure() const {
    const std::string api = source_path(fmt::format("{}_api", program_.name));
    const std::string threads = source_path(fmt::format("{}_threads", program_.name));
    std::string lines = fmt::format("{} {}\n", program_.tool_version, options_.cpu);
    for (const auto& [path, text] : texts_) {
      if (path.starts_with("src/") && path != api && path != threads)
        lines += fmt::format("{}  {}\n", sha256_hex(text), path);
    }
    return sha256_hex(lines);
  }

  /// What is derived from texts: their digests take their places in them. None of it follows from the bytes
  /// of the weights, so that a model which was only trained further changes no text.
  void settle_texts() {
    const std::string hash = structure();
    // The mark of an instance that this very program has initialised.
    const std::string own = fmt::format("{} {} {}", program_.name, hash, program_.options);
    data_["structure"] = hash.substr(0, 16);
    data_["instance_mark"] = sha256_hex(own).substr(0, 16);
    std::string runtime;
    for (const auto& [path, file] : files_.files()) {
      if (path.starts_with("gcrt/")) runtime += fmt::format("{}  {}\n", sha256_hex(file.bytes), path);
    }
    data_.update(mark_texts(program_.name, texts_, runtime));
    for (auto& [path, text] : texts_) files_.add(path, std::move(text));
    texts_.clear();
    is_settled_ = true;
    render("library/files.h.j2", fmt::format("src/{}_files.h", program_.name));
  }

  /// NAME of a model of one size, else NAME_batch_4.
  std::string stem_of(std::size_t schedule) const {
    if (program_.sizes.empty()) return program_.name;
    return fmt::format("{}_{}", program_.name, data_["schedules"][schedule]["label"].get<std::string>());
  }
  /// What the templates of one schedule see.
  Json data_of(std::size_t schedule) const {
    Json data = Json::object();
    for (const auto& [key, value] : data_.items()) {
      if (key != "schedules") data[key] = value;
    }
    data.update(data_["schedules"][schedule]);
    return data;
  }
  std::size_t sized_schedules() const { return data_["schedules"].size(); }
  /// Interface and schedule in one source: of a device, unless there are several schedules.
  bool has_one_source() const {
    return program_.sizes.empty() || (target_.has_device_memory && program_.schedules.size() == 1);
  }

  /// The header that says where everything lies, of each schedule.
  std::vector<std::pair<std::string, std::size_t>> plans() const {
    if (!data_["has_offsets"].get<bool>()) return {};
    const auto path = [](const Json& data) {
      return fmt::format("src/{}.h", data["plan_stem"].get<std::string>());
    };
    if (program_.sizes.empty()) return {{path(data_), 0}};
    std::vector<std::pair<std::string, std::size_t>> out;
    for (std::size_t i = 0; i < sized_schedules(); ++i) out.emplace_back(path(data_["schedules"][i]), i);
    return out;
  }

  void add_schedules() {
    for (const auto& [path, schedule] : plans())
      render("library/plan.h.j2", path, program_.sizes.empty() ? data_ : data_of(schedule));
    const std::string schedule = of_target(fmt::format("model.{}.j2", target_.source_suffix));
    if (has_one_source()) {
      render(schedule, source_path(program_.name));
      return;
    }
    render(of_target(fmt::format("sizes.{}.j2", target_.source_suffix)), source_path(program_.name));
    for (std::size_t i = 0; i < sized_schedules(); ++i) {
      render(schedule, source_path(stem_of(i)), data_of(i));
    }
  }

  /// For the benchmark.
  void add_timed_schedules() {
    const std::string schedule = of_target("layers.h.j2");
    set_timed(data_, true);
    if (program_.sizes.empty()) {
      render(schedule, "apps/layers.h");
    } else {
      render(of_target("sized_layers.h.j2"), "apps/layers.h");
    }
    for (std::size_t i = 0; i < sized_schedules(); ++i) {
      Json data = data_of(i);
      set_timed(data, true);
      render(schedule, fmt::format("apps/layers_{}.h", data["label"].get<std::string>()), data);
    }
    set_timed(data_, false);
    data_["timed_runs"] = timed_runs();
  }

  /// The functions that run a schedule, and the layers that do so with a clock.
  Json timed_runs() const {
    const std::string scope = program_.name + "_app::";
    if (program_.sizes.empty()) {
      return Json::array(
          {{{"index", 0}, {"entry", data_["entry"]}, {"layers", scope + "Layers"}, {"largest", ""}}});
    }
    Json runs = Json::array();
    for (const Json& schedule : data_["schedules"]) {
      const std::string layers = fmt::format("{}{}::Layers", scope, schedule["label"].get<std::string>());
      runs.push_back(
          {{"index", runs.size()},
           {"entry", schedule["entry"]},
           {"layers", layers},
           {"largest",
            program_.has_bounds ? fmt::format("{{{}}}", schedule["sizes_text"].get<std::string>()) : ""}});
    }
    return runs;
  }

  void add_build_files() {
    Json schedules = Json::array();
    for (std::size_t i = 0; !has_one_source() && i < sized_schedules(); ++i)
      schedules.push_back(source_path(stem_of(i)));
    Json sources = schedules;
    sources.insert(sources.begin(), source_path(program_.name));
    data_["schedule_sources"] = has_one_source() ? sources : std::move(schedules);
    for (const KernelFile& file : split_kernels(program_, options_.kernels_per_file)) {
      sources.push_back(source_path(file.stem));
    }
    data_["sources"] = std::move(sources);
    render(of_target("CMakeLists.txt.j2"), "CMakeLists.txt");
    render(of_target("Makefile.j2"), "Makefile");
    render("project/LICENSE.j2", "LICENSE");
    add_package();
  }

  /// What installs the library, and tells CMake and pkg-config of what was installed.
  void add_package() {
    const std::string& name = program_.name;
    render("package/install.j2", "package/install.cmake");
    render("package/config.j2", fmt::format("package/{}-config.cmake.in", name));
    render("package/pc.j2", fmt::format("package/{}.pc.in", name));
    if (target_.has_thread_pool)
      render("package/threads_pc.j2", fmt::format("package/{}_threads.pc.in", name));
  }

  /// What a build system for microcontrollers compiles: the library, without its threads.
  std::vector<std::string> library_sources() const {
    std::vector<std::string> sources = data_["sources"];
    if (target_.has_levels) sources.push_back(source_path(fmt::format("{}_api", program_.name)));
    if (data_["weights"]["incbin"]) sources.push_back(fmt::format("src/{}_weights.S", program_.name));
    if (data_["weights"]["array"]) sources.push_back(fmt::format("src/{}_weights.c", program_.name));
    return sources;
  }

  void add_pack(const std::string& pack) {
    const std::string& name = program_.name;
    data_["pack_sources"] = library_sources();
    const std::string folder = fmt::format("pack/{}/{}", pack, name);
    if (pack == "esp-idf") {
      render("pack/esp_idf.j2", folder + "/CMakeLists.txt");
    } else if (pack == "zephyr") {
      render("pack/zephyr.j2", "pack/zephyr/CMakeLists.txt");
      render("pack/zephyr_kconfig.j2", "pack/zephyr/Kconfig");
      render("pack/zephyr_module.j2", "pack/zephyr/zephyr/module.yml");
    } else {
      render(fmt::format("pack/{}.j2", pack),
             folder + (pack == "arduino" ? "/library.properties" : "/library.json"));
      add_copies(folder + "/src/");
    }
  }

  /// Build systems that take one folder and no flags find all of the library in it.
  void add_copies(const std::string& folder) {
    const std::string include = fmt::format("include/{0}/{0}", program_.name);
    std::vector<std::string> sources = library_sources();
    for (const char* header : {"internal", "files"})
      sources.push_back(fmt::format("src/{}_{}.h", program_.name, header));
    for (const auto& [path, schedule] : plans()) sources.push_back(path);
    std::vector<std::string> headers;
    for (const std::string& source : sources) {
      const OutputFile file = *files_.find(source);
      for (std::string& header : included_by(file.bytes)) headers.push_back(std::move(header));
      files_.add(folder + std::string(std::next(source.begin(), 4), source.end()), file.bytes);
    }
    for (const std::string& header : runtime_headers(headers)) {
      files_.add(folder + header, files_.find(header)->bytes);
    }
    for (const char* suffix : {".h", ".hpp"}) {
      files_.add(fmt::format("{}{}/{}{}", folder, program_.name, program_.name, suffix),
                 files_.find(include + suffix)->bytes);
    }
  }

  void add_kernels() {
    for (const Json& file : data_["kernel_files"]) {
      Json data = {{"file", file}};
      for (const char* key : {"name", "upper", "tool_version", "mark_name", "mark"}) data[key] = data_[key];
      render("library/kernels.cpp.j2", source_path(file["stem"].get<std::string>()), data);
    }
  }

  void add_weights() {
    if (program_.weights_bytes == 0) return;
    program_.weights.name_structure(std::stoull(data_["structure"].get<std::string>(), nullptr, 16));
    const SharedBytes& bytes = program_.weights.bytes;
    if (options_.weights == WeightsMode::kArray) {
      const Json data = {{"name", data_["name"]},
                         {"alignment", data_["alignment"]},
                         {"weights_words", words_of(bytes)},
                         {"weights_words_count", (bytes.size() + 3) / 4}};
      files_.add(fmt::format("src/{}_weights.c", program_.name),
                 engine_.render("library/weights.c.j2", data));
      return;
    }
    if (options_.weights == WeightsMode::kIncbin) {
      render("library/weights.S.j2", fmt::format("src/{}_weights.S", program_.name));
    }
    files_.add(fmt::format("data/{}.weights.bin", program_.name), bytes);
  }

  /// The headers that the files so far include, and those that these include.
  void add_runtime() {
    std::vector<std::string> included;
    for (const auto& [path, text] : texts_) {
      for (std::string& header : included_by(text)) included.push_back(std::move(header));
    }
    for (const std::string& header : runtime_headers(included)) {
      files_.add(header, std::string(find_embedded_file(fmt::format("{}{}", kRuntime, header))->contents));
    }
  }

  void add_manifest() {
    Json content = Json::object();
    content["version"] = program_.tool_version;
    content["name"] = program_.name;
    content["target"] = target_.name;
    content["model_sha256"] = program_.model_sha256;
    if (program_.weights_bytes > 0) content["weights_structure"] = data_["structure"];
    content["producer"] = program_.producer;
    content["opset"] = program_.opset;
    content["options"] = program_.options;
    for (const char* key : {"arena_bytes", "state_bytes", "weights_bytes", "instance_bytes", "alignment"}) {
      content[key] = data_[key];
    }
    for (const char* list : {"inputs", "outputs"}) {
      content[list] = Json::array();
      for (const Json& port : data_[list]) {
        content[list].push_back({{"name", port["model_name"]},
                                 {"c_name", port["c_name"]},
                                 {"element", port["element"]},
                                 {"shape", port["shape"]}});
        if (port["is_counted"].get<bool>())
          content[list].back()["counted"] = {{"axis", port["counted_axis"]}, {"output", port["count"]}};
      }
    }
    if (program_.sizes.empty()) {
      for (const char* key : {"statistics", "choices", "layers"}) content[key] = data_[key];
    } else {
      add_sized_manifest(content);
    }
    if (!program_.packed_weights.empty()) content["packed_weights"] = data_["packed_weights"];
    files_.add_manifest(program_.name, content);
  }

  void add_sized_manifest(Json& content) const {
    content["sizes"] = Json::array();
    for (const Json& size : data_["size_names"]) {
      content["sizes"].push_back({{"name", size["name"]}, {"c_name", size["c_name"]}});
    }
    content["schedules"] = Json::array();
    for (std::size_t i = 0; i < sized_schedules(); ++i) {
      const Json& schedule = data_["schedules"][i];
      Json entry = {{"sizes", schedule["sizes"]}, {"arena_bytes", program_.schedules[i].arena_bytes}};
      for (const char* list : {"inputs", "outputs"}) {
        entry[list] = Json::array();
        for (const Json& port : schedule[list]) entry[list].push_back(port["shape"]);
      }
      for (const char* key : {"label", "statistics", "choices", "layers"}) entry[key] = schedule[key];
      content["schedules"].push_back(std::move(entry));
    }
  }

  const Program& program_;
  const TargetInfo& target_;
  const EmitOptions& options_;
  TemplateEngine engine_;
  Json data_;
  FileSet files_;
  std::vector<PathAndText> texts_;  // with stand-ins for their digests
  bool is_settled_ = false;         // whether texts are files at once
};

}  // namespace

std::string render_template(const std::string& name, const Json& data) {
  return TemplateEngine(load_template).render(name, data);
}

FileSet emit(const Program& program, const EmitOptions& options) { return Emitter(program, options).run(); }

std::vector<std::string> runtime_headers(const std::vector<std::string>& headers) {
  std::set<std::string> seen(headers.begin(), headers.end());
  std::vector<std::string> pending(seen.begin(), seen.end());
  while (!pending.empty()) {
    const std::string header = std::move(pending.back());
    pending.pop_back();
    const EmbeddedFile* file = find_embedded_file(fmt::format("{}{}", kRuntime, header));
    if (file == nullptr) {
      throw CompileError(ExitCode::kInternal,
                         fmt::format("internal compiler error: no runtime header '{}'", header));
    }
    for (std::string& included : included_by(file->contents)) {
      if (seen.insert(included).second) pending.push_back(std::move(included));
    }
  }
  return {seen.begin(), seen.end()};
}

}  // namespace gcompile
