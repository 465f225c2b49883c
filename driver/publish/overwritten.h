#pragma once
// What a project that is published over an older one takes with it.

#include <string>
#include <vector>

#include "codegen/emit/file_set.h"

namespace gcompile {

/// One sentence each: that the folder holds the project of another model, and which of our files were edited
/// since they were written and are about to be replaced or removed. Changes nothing; what cannot be read
/// counts as not there.
std::vector<std::string> told_before_overwriting(const FileSet& files, const std::string& directory);

}  // namespace gcompile
