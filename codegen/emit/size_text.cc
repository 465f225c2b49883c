#include "codegen/emit/size_text.h"

#include <fmt/format.h>

#include "ir/graph/operator.h"

namespace gcompile {
std::string size_text(const Program& program, ir::Dim size, const std::string& sizes) {
  ir::DimSpelling spelling;
  spelling.times = " * ";
  spelling.name = [&](int symbol) -> ir::DimSpelling::Name {
    const Size& named = program.sizes.at(static_cast<std::size_t>(symbol));
    return {sizes + named.c_name, named.multiple};
  };
  spelling.quotient = [&](ir::Dim a, std::int64_t divisor) {
    // C++ rounds towards zero.
    if (!ir::always_less_equal(0, a)) operator_error("a size is a quotient of what may be negative");
    return fmt::format("(({}) / {})", size_text(program, a, sizes), divisor);
  };
  spelling.extreme = [](bool is_min, const std::string& a, const std::string& b) {
    return fmt::format("({0} {1} {2} ? {0} : {2})", a, is_min ? "<" : ">", b);
  };
  return to_string(size, spelling);
}

}  // namespace gcompile
