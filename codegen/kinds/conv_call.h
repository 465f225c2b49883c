#pragma once
// What the families of convolutions share, whatever they multiply: their geometry, plans, and the ends of
// their calls.

#include <string>
#include <vector>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/kinds/dense_plan.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {

ImageShape conv_image(const ir::Problem& problem);

/// The only plan of gcrt's `function` of the CPU, which reaches that part of the machine's peak.
std::vector<PlannedCost> conv_plans(const ir::Problem& problem, const Machine& machine, double efficiency,
                                    const char* function);
/// A dense convolution of the CPU as a product.
DenseWork dense_conv_work(const ir::Problem& problem);
/// The same with its dense_plan().
std::vector<PlannedCost> dense_conv_plans(const ir::Problem& problem, const Machine& machine,
                                          double efficiency, const char* function);
/// The call of gcrt's function of that name on the CPU: NAME<TILE>(threads, shape, ARGUMENTS, blocking, EPILOGUE),
/// where the plan names tiles, else NAME with `options`, its template arguments. NAME_rows is the same for rows
/// of one image.
void write_dense_conv(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer,
                      const std::string& name, const std::string& options, const std::string& arguments);

/// "3, 1, DepthwiseChannels::many": window and channels of a depthwise convolution, as gcrt's kernels of the CPU
/// are compiled for them.
std::string depthwise_arguments(const ImageShape& image);
/// A kernel of CUDA without tiles.
std::vector<PlannedCost> depthwise_cuda_plans(const ir::Problem& problem, const Machine& machine);
/// Its call: FUNCTION<DepthwiseWindow::k3>(queue, shape, ARGUMENTS, epilogue).
void write_depthwise_cuda(const ir::Problem& problem, CallWriter& writer, const std::string& function,
                          const std::string& arguments);

/// A convolution on tiles of CUDA's tensor cores.
struct TiledConv {
  std::string function;   // "conv2d"; with "_pointwise" behind it for pointwise convolutions
  std::string precision;  // first template argument with a comma, or nothing
  KernelTensor x;
  std::string arguments;        // behind x: "w"
  std::string border_argument;  // which pointwise convolutions do not take: ", std::uint8_t{3}"
};
/// "copied_in<16>(x)": the image as kernels of tiles copy it.
std::string copied_image(const ImageShape& image, const KernelTensor& x);
std::vector<PlannedCost> tiled_conv_plans(const ir::Problem& problem, const Machine& machine,
                                          Precision precision);
void write_tiled_conv(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer,
                      Precision precision, const TiledConv& conv);

/// The weights of float convolutions on CUDA, parameter "w", and the call of conv2d on them.
void packed_conv_weights(CallWriter& writer, const gcrt::ConvShape& shape, Precision precision);
void write_direct_conv(const ir::Problem& problem, const KernelPlan& plan, const KernelTensor& x,
                       CallWriter& writer, Precision precision);

}  // namespace gcompile
