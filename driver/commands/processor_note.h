#pragma once

#include <string>

namespace gcompile {

/// What there is to say of a value of --cpu of which there are no figures: what is planned for instead, and
/// the nearest name of its kind that is known. Empty where there is nothing to say.
std::string note_of_processor(const std::string& cpu);

}  // namespace gcompile
