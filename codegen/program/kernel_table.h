#pragma once
// The functions of a program: calls that need the same text share one.

#include <map>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "codegen/schedule/schedule.h"

namespace gcompile {

class KernelTable {
 public:
  explicit KernelTable(const TargetInfo& target) : target_(target) {}

  /// The name of the function that the step calls; its text joins the table if it is new.
  std::string name_of(const LoweredStep& step);

  /// Moves kernels, functors and the headers of all kernels into the program.
  void finish(Program& program);

 private:
  Text signature(const KernelCall& call) const;
  /// Index of the functor type of the step's call; -1: it has none. The kernel will be called `kernel` if it
  /// is new.
  int functor_of(const LoweredStep& step, const std::string& kernel);
  std::string new_name(const LoweredStep& step) const;

  const TargetInfo& target_;
  std::vector<Kernel> kernels_;
  std::vector<Functor> functors_;
  std::map<Text, int> functor_by_text_;
  std::map<std::pair<int, Text>, std::size_t> kernel_by_text_;  // by functor and text
};

}  // namespace gcompile
