// What kernels of loop nests say beside their loops: the checks of indices.
#include "codegen/loops/cuda/cuda_loop_printer.h"

#include <gtest/gtest.h>

#include "ir/forms/form.h"

namespace gcompile {
namespace {

using ir::ElementType;

KernelTensor tensor(ElementType element) { return {"x", element, {64, 64, 1}, 64}; }

TEST(CudaLoopPrinter, LooksAtAllIndicesThatNoAddressMentions) {
  // Along an axis of one element every index is read as 0: the kernel that reads it does not walk the indices.
  ir::LoopForm form = ir::LoopForm::over({3, 1, 64});
  const int index = form.dag.load(1, ElementType::kInt64, form.identity());
  const int offset = form.dag.load(2, ElementType::kInt64, form.identity());
  form.checks = {{form.dag.apply(ir::ScalarOp::kAdd, {index, offset}), {0, 1}}};
  form.set_root(form.dag.load(0, ElementType::kFloat32, form.identity()));
  const std::vector<KernelTensor> operands = {tensor(ElementType::kFloat32), tensor(ElementType::kInt64),
                                              tensor(ElementType::kInt64)};
  const std::vector<CudaParameter> parameters = {
      {"const float* x", "x", "x"}, {"const std::int64_t* i", "i", "i"}, {"const std::int64_t* j", "j", "j"}};
  SizeParameters sizes;
  const CudaLoops loops = print_cuda_loops(form, operands, tensor(ElementType::kFloat32), parameters,
                                           gcrt::device_model(87), sizes);
  EXPECT_EQ(loops.count, 2);
  const std::string device = loops.device.spelled({"k", ""});
  EXPECT_NE(device.find("_check("), std::string::npos) << device;
  EXPECT_EQ(device.find("x[0]"), std::string::npos) << device;
}

}  // namespace
}  // namespace gcompile
