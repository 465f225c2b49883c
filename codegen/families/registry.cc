// The families that there are.

#include "codegen/choice/family.h"

namespace gcompile {

#define GC_FAMILY(NAME) const KernelFamily& family_##NAME();
#include "codegen/families/families.def"
#undef GC_FAMILY

std::span<const KernelFamily* const> families() {
  static const KernelFamily* const kFamilies[] = {
#define GC_FAMILY(NAME) &family_##NAME(),
#include "codegen/families/families.def"
#undef GC_FAMILY
  };
  return kFamilies;
}

const KernelFamily* find_family(std::string_view name) {
  for (const KernelFamily* family : families()) {
    if (family->name == name) return family;
  }
  return nullptr;
}

}  // namespace gcompile
