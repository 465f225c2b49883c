#pragma once
// Large raw data of tensors stays where it lies in the model's bytes: protobuf gets the message without it,
// and a note instead of where it is. The bytes have passed scan_model().

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/files/model_file.h"

namespace gcompile::frontend {

/// The field of TensorProto that holds the note; the scan refuses models that have such a field themselves.
constexpr int kRawPlaceField = 30000;

/// The same ModelProto, where each initializer's and each attribute's raw_data of a page or more is replaced
/// by its place in `bytes`; nullopt when there is none.
std::optional<std::string> leave_raw_data(std::string_view bytes);
/// Reads the note.
RawPlace decode_raw_place(std::string_view note);

}  // namespace gcompile::frontend
