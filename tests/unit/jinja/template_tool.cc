// Renders templates for jinja_differential.py. Each line of stdin is a JSON object {"templates": {name:
// text}, "main": name, "data": {...}}; each line of stdout answers with {"text": ...} or {"error": ...}.
#include <iostream>
#include <string>

#include "base/diagnostics.h"
#include "jinja/engine.h"
#include "nlohmann/json.hpp"

int main() {
  using Json = nlohmann::ordered_json;
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json request = Json::parse(line);
    gcompile::TemplateEngine engine([&](const std::string& name) -> std::optional<std::string> {
      const auto found = request["templates"].find(name);
      if (found == request["templates"].end()) return std::nullopt;
      return found->get<std::string>();
    });
    Json answer;
    try {
      answer["text"] = engine.render(request["main"], request["data"]);
    } catch (const gcompile::CompileError& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << '\n';
  }
  return 0;
}
