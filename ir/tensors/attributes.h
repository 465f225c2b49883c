#pragma once
// Typed attributes of a node, kept sorted by name; defaults are filled at import, so nobody sees "missing".

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

enum class AttributeKind : std::uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };

using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                                    std::vector<float>, std::vector<std::string>, Tensor>;

AttributeKind kind_of(const AttributeValue& value);

class Attributes {
 public:
  // Defined in one file, as the members below are: every file that knows a graph would make the same map again.
  Attributes();
  Attributes(const Attributes&);
  Attributes(Attributes&&) noexcept;
  Attributes& operator=(const Attributes&);
  Attributes& operator=(Attributes&&) noexcept;
  ~Attributes();

  bool has(std::string_view name) const;
  void set(std::string name, AttributeValue value);
  void erase(std::string_view name);
  const std::map<std::string, AttributeValue, std::less<>>& all() const { return values_; }

  // Each throws an internal error when the attribute is absent or of another kind:
  // the import has checked both.
  std::int64_t int_of(std::string_view name) const;
  bool flag(std::string_view name) const { return int_of(name) != 0; }
  float float_of(std::string_view name) const;
  const std::string& string_of(std::string_view name) const;
  const std::vector<std::int64_t>& ints_of(std::string_view name) const;
  const std::vector<float>& floats_of(std::string_view name) const;
  const std::vector<std::string>& strings_of(std::string_view name) const;
  const Tensor& tensor_of(std::string_view name) const;

  /// Same names and values; floats by bit pattern.
  bool identical(const Attributes& other) const;

 private:
  template <class T>
  const T& get(std::string_view name) const;
  std::map<std::string, AttributeValue, std::less<>> values_;
};

std::string to_string(const AttributeValue& value);

}  // namespace gcompile::ir
