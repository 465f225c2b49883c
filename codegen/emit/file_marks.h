#pragma once
// Files of different runs never build together: every source and header holds a digest of its own text, and
// src/NAME_files.h says for each which digest is that of its run. A file whose text is the same in two runs
// has the same bytes in both.

#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// What templates print for the name of a text's digest and for the digest, which are known when the text is.
/// No name of a model holds such bytes.
inline constexpr const char* kMarkNameStandIn = "\1NAME\1";
inline constexpr const char* kMarkStandIn = "\1MARK\1";

/// What macros of that name begin with: "SRC_NET_H" of "src/net.h".
std::string capitals(std::string text);

/// A text by its path in the project.
using PathAndText = std::pair<std::string, std::string>;

/// Whether digests of `path` are those of the public headers,
/// which know no other file and have one in common.
bool is_interface(const std::string& path);

/// Puts names and digests in the places of what stands for them. `runtime`: digests of the runtime's headers,
/// whose text is no model's: the header that includes them for all sources answers for them. Returns what
/// files.h.j2 prints: "interface" and "marks", each with the name and the digest.
nlohmann::ordered_json mark_texts(const std::string& model, std::vector<PathAndText>& texts,
                                  const std::string& runtime);

}  // namespace gcompile
