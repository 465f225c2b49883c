#pragma once
// The entries of a batch by one number, as work items are: variables b<axis>, and pointers that move by them.

#include <set>
#include <string>

#include "codegen/loops/code_text.h"
#include "codegen/loops/size_parameters.h"

namespace gcompile {

/// A pointer's offset to the head, or other entry, that the variables b<axis> name.
struct HeadOffset {
  std::string text;  // " + 64 * b1"
  std::set<int> axes;
};
HeadOffset moved(const ir::Shape& strides, const ir::Shape& heads, SizeParameters& sizes);

/// Declares these coordinates of the entry that the variable `name` counts.
void declare_coordinates(CodeText& code, const std::string& name, const std::set<int>& axes,
                         const ir::Shape& heads, SizeParameters& sizes);

}  // namespace gcompile
