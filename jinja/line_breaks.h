#pragma once
// Emitted text stays within a page of 110 columns whatever a model calls things: templates write lines as
// they are with short names, and what is longer is broken here.

#include <string>
#include <string_view>

namespace gcompile {

inline constexpr std::size_t kMostColumns = 110;

/// `text` of the file at `path`, whose suffix says how it is written: C, C++ and CUDA are broken between
/// arguments and operands, comments and Markdown between words; a comment behind code goes before it. The
/// same tokens in the same order. What has no such place stays as it is: strings, directives, tables,
/// commands of build files.
std::string with_short_lines(std::string_view path, std::string text);

}  // namespace gcompile
