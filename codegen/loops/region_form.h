#pragma once
// Loop forms that are one part of a form, or all of it but what memory makes idle.

#include <functional>
#include <optional>

#include "ir/forms/form.h"

namespace gcompile {

/// The form as it runs over one of its regions: of the dag only what that and the stages need, in the same
/// order, so that it prints alike. A form of many regions is then printed in the time that all its nodes
/// take, not in that time for every region. Checks are left out.
ir::LoopForm form_of_region(const ir::LoopForm& form, const ir::Region& region);

/// A map over all axes whose value is the scalar, an index that is to be checked.
ir::LoopForm form_of_check(const ir::LoopForm& form, const ir::BoundsCheck& check);

/// The form without what it looks up to find a place along an axis that has no step in memory; nullopt: it
/// does not. `strides_of`: an operand's.
std::optional<ir::LoopForm> form_without_idle_lookups(const ir::LoopForm& form,
                                                      const std::function<ir::Shape(int)>& strides_of);

}  // namespace gcompile
