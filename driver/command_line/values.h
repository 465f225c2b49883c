#pragma once
// The values of options: texts -> fields of Options. Each throws CompileError (kUsage).

#include <cstdint>
#include <string>

#include "driver/command_line/options.h"

namespace gcompile {

/// A whole number of [lowest, highest].
std::int64_t number_of(const char* option, const std::string& text, std::int64_t lowest,
                       std::int64_t highest);
/// A number of bytes, of KiB ("64K") or MiB ("2M").
std::int64_t bytes_of(const char* option, const std::string& text);

void add_dim(Options& options, const std::string& text);
void add_shape(Options& options, const std::string& text);
void add_set(Options& options, const std::string& text);
void add_elements(Options& options, const std::string& text);
void add_state(Options& options, const std::string& text);
void add_forced_kernel(Options& options, const std::string& text);
void add_most_growth(Options& options, const std::string& text);
void set_cpu(Options& options, const std::string& text);
void set_weights(Options& options, const std::string& text);

}  // namespace gcompile
