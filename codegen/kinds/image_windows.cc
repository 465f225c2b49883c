#include "codegen/kinds/image_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "codegen/choice/refusals.h"

namespace gcompile {

using ir::Shape;

namespace {

NeededOrder needs_channels_last(const ir::Problem& problem, std::size_t i) {
  const ir::ProblemOperand& operand = problem.operands[i];
  if (i != 0 || operand.shape[1] == 1 || operand.strides[1] == 1) return std::nullopt;
  return ir::channels_last(operand.shape.size());
}

}  // namespace

ImageShape image_of(const ir::Problem& problem, const ir::Window& window, std::int64_t groups) {
  return image_shape(problem.shape(0), problem.operands[0].strides, problem.results[0].shape, window, groups);
}

bool is_depthwise(const ir::Problem& problem) {
  return std::get<ir::ConvWork>(problem.work).groups > 1 && problem.shape(1)[1] == 1;
}

Refusal refuse_image(const ir::Problem& problem, bool has_weights) {
  if (problem.shape(0).size() > 4) return "three and more spatial axes";
  if (has_weights && !problem.operands[1].constant) return "weights that only the run knows";
  return std::nullopt;
}

bool takes_open_images(const ir::Problem& problem) {
  const auto fits = [](ir::Dim size) { return ir::highest(size) <= INT32_MAX; };
  const ir::Shape &x = problem.shape(0), &y = problem.results[0].shape;
  return x[1].is_constant() && y[1].is_constant() && std::all_of(x.begin(), x.end(), fits) &&
         std::all_of(y.begin(), y.end(), fits);
}

Refusal refuse_image_beyond_32_bits(const ir::Problem& problem, const Machine& machine) {
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  const ir::ProblemOperand& image = problem.operands[0];
  double last = 0;
  for (std::size_t axis = 0; axis < image.shape.size(); ++axis) {
    last += static_cast<double>(ir::highest(image.shape[axis]) - 1) *
            static_cast<double>(ir::highest(image.strides[axis]));
  }
  if (last > INT32_MAX) return "an image of more than 2^31 elements";
  return std::nullopt;
}

bool takes_open_images_of_32_bits(const ir::Problem& problem) {
  return takes_open_images(problem) && !refuse_image_beyond_32_bits(ir::at_highest(problem), {});
}

ir::LayoutOffer offers_channels_last(const ir::Problem& problem) {
  ir::LayoutOffer offer;
  offer.operands.assign(problem.operands.size(), std::nullopt);
  offer.operands[0] = offer.result = ir::channels_last(problem.shape(0).size());
  return offer;
}

std::array<Recipe, 2> for_channels_last(Recipe cpp, Recipe cuda) {
  for (Recipe* recipe : {&cpp, &cuda}) {
    recipe->needs = needs_channels_last;
    recipe->layout = offers_channels_last;
  }
  if (cuda.refuses == nullptr) cuda.refuses = refuse_beyond_32_bits;
  return {cpp, cuda};
}

Text shape_and_epilogue(const ir::Problem& problem, const ImageShape& image, CallWriter& writer) {
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  writer.call().shape = image.text("shape", writer.call().sizes);
  return Text("  ") + epilogue.declaration() + "\n";
}

void write_parallel(const ir::Problem& problem, const ImageShape& image, CallWriter& writer,
                    const std::string& function, const std::string& arguments) {
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  CodeText code(1);
  call_with_threads(writer.call(), code, function, fmt::format("shape, {}, ", arguments) + epilogue.value());
  writer.call().shape = image.text("shape", writer.call().sizes);
  writer.call().body += code.text();
}

}  // namespace gcompile
