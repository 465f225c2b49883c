#pragma once
// What templates see of one schedule beside its steps: ports, offsets, the memory plan, layers and figures.

#include "codegen/program/program.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// A tensor of the C API: names, type, sizes in bytes.
nlohmann::ordered_json port_json(const std::string& c_name, const std::string& model_name,
                                 const std::string& c_type, const ir::TensorType& type, std::size_t index);
nlohmann::ordered_json offset_json(const Offset& offset);

/// Initialisers of a table, "{1, 3}, {}": of numbers and of expressions over NAME_sizes.
std::string shapes_text(const Program& program, const std::vector<ir::Shape>& shapes);

/// Whether the schedule that is rendered next has marks between its layers.
void set_timed(nlohmann::ordered_json& out, bool is_timed);

void add_schedule_tables(nlohmann::ordered_json& out, const Program& program, const Schedule& schedule);

}  // namespace gcompile
