#pragma once
// Parts of report.html, as its template shows them: rows of text, and pictures. A row of a table that people
// sort has numbers beside their texts.

#include "codegen/program/program.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// "12.3 %" of a whole; empty when there is no whole.
std::string share_text(std::int64_t part, std::int64_t whole);

/// What the buffer is called: the tensor in it; where a pass made that and gave it no name, by its step.
std::string shown_name(const Buffer& buffer);

/// What is alive at the peak, all buffers, and the map of them.
nlohmann::ordered_json memory_part(const Schedule& schedule);
/// The weights by tensor, and a map of them.
nlohmann::ordered_json flash_part(const Program& program);
/// The layers with what they compute, move and are predicted to take, and a picture of the times. Columns
/// that only some targets have are `headings` and the rows' `cells`.
nlohmann::ordered_json time_part(const Program& program, const Schedule& schedule);
/// The model's nodes and the calls that they became: from which call each one reads, drawn as lanes; what no
/// call computes any more; how many bytes each group of nodes no longer moves.
nlohmann::ordered_json graph_part(const Schedule& schedule);
/// Passes and laws with their counts, and remarks of one text as one row.
nlohmann::ordered_json rewrites_part(const Schedule& schedule);

}  // namespace gcompile
