#include "jinja/engine.h"

#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "jinja/ast.h"
#include "jinja/parser.h"
#include "jinja/render.h"
#include "nlohmann/json.hpp"

namespace gcompile {

TemplateEngine::TemplateEngine(Loader loader) : loader_(std::move(loader)) {}

TemplateEngine::~TemplateEngine() = default;

void TemplateEngine::load(const std::string& name) {
  struct Request {
    std::string name;
    std::string includer;
    TemplatePosition position;
  };
  std::vector<Request> requests = {{name, "", {}}};
  while (!requests.empty()) {
    const Request request = std::move(requests.back());
    requests.pop_back();
    if (templates_.count(request.name) > 0) continue;
    const std::optional<std::string> source = loader_(request.name);
    if (!source && request.includer.empty()) {
      throw CompileError(ExitCode::kInternal, "there is no template '" + request.name + "'");
    }
    if (!source)
      throw_template_error(request.includer, request.position, "there is no template '" + request.name + "'");
    const auto& parsed = templates_[request.name] = parse_template(request.name, *source);
    for (const auto& [included, position] : parsed->includes)
      requests.push_back({included, request.name, position});
  }
}

std::string TemplateEngine::render(const std::string& name, const Json& data) {
  load(name);
  if (!data.is_object()) throw CompileError(ExitCode::kInternal, "template data must be an object");
  return render_template(templates_, *templates_.at(name), data);
}

}  // namespace gcompile
