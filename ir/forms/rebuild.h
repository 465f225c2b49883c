#pragma once

#include <functional>

#include "ir/forms/form.h"

namespace gcompile::ir {

/// The form with every expression rebuilt: loads and accumulators go through `leaf`, which returns an id of
/// the new dag. Regions, stages and checks keep their structure. `start`: what the new dag holds before.
LoopForm rebuild(const LoopForm& form, const std::function<int(Dag&, const ScalarNode&)>& leaf,
                 Dag start = {});

}  // namespace gcompile::ir
