// product.loops: the sum over its terms as plain loops, of every element type, with weights of the run: so
// that no product is refused for want of a faster kernel. Rows are rounded only where a family does it.

#include "codegen/kinds/plain_loops.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (std::get<ir::ProductWork>(problem.work).rounding == ir::RowRounding::kDone)
    return "rows that are rounded to int8";
  return std::nullopt;
}

}  // namespace

const KernelFamily& family_product_loops() {
  static const KernelFamily family = [] {
    KernelFamily loops = plain_loops_family("product.loops", ir::Kind::kProduct);
    loops.refuses = refuses;
    return loops;
  }();
  return family;
}

}  // namespace gcompile
