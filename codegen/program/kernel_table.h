#pragma once
// The functions of a program: calls that need the same text share one.

#include <map>
#include <set>
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
  /// The text of a kernel before its sizes have names.
  struct Draft {
    Text signature, text;
    /// What all calls pass for each: one entry where it is the same in words.
    std::vector<std::set<std::string>> sizes;
    std::vector<std::string> names;  // of the first call; empty: none that is short
  };

  Text signature(const KernelCall& call) const;
  /// `owner`: what tells a kernel apart at last.
  std::string unused(const KernelName& name, const std::string& owner);
  /// Index of the call's functor type, which joins those that there are. The kernel is called `kernel`.
  int add_functor(const KernelCall& call, const std::string& kernel);

  /// The names of the kernel's parameters that are sizes, and notes on those that none of them names.
  void settle(Kernel& kernel, const Draft& draft);

  const TargetInfo& target_;
  std::vector<Kernel> kernels_;
  std::vector<Draft> drafts_;  // of each kernel
  std::vector<Functor> functors_;
  std::set<std::string> names_;         // of both
  std::map<std::string, int> repeats_;  // of names that nothing else tells apart
  std::map<Text, int> functor_by_text_;
  std::map<std::pair<int, Text>, std::size_t> kernel_by_text_;  // by functor and text
};

}  // namespace gcompile
