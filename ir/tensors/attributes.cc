#include "ir/tensors/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/diagnostics.h"

namespace gcompile::ir {
namespace {

bool identical_values(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<Tensor>(&a)) return x->identical(std::get<Tensor>(b));
  if (const auto* x = std::get_if<float>(&a)) return std::memcmp(x, &std::get<float>(b), sizeof(float)) == 0;
  if (const auto* x = std::get_if<std::vector<float>>(&a)) {
    const auto& y = std::get<std::vector<float>>(b);
    return x->size() == y.size() &&
           (x->empty() || std::memcmp(x->data(), y.data(), x->size() * sizeof(float)) == 0);
  }
  if (const auto* x = std::get_if<std::int64_t>(&a)) return *x == std::get<std::int64_t>(b);
  if (const auto* x = std::get_if<std::string>(&a)) return *x == std::get<std::string>(b);
  if (const auto* x = std::get_if<std::vector<std::int64_t>>(&a))
    return *x == std::get<std::vector<std::int64_t>>(b);
  return std::get<std::vector<std::string>>(a) == std::get<std::vector<std::string>>(b);
}

}  // namespace

template <class T>
const T& Attributes::get(std::string_view name) const {
  const auto at = values_.find(name);
  GC_CHECK(at != values_.end() && std::holds_alternative<T>(at->second));
  return std::get<T>(at->second);
}

template const std::int64_t& Attributes::get(std::string_view) const;
template const float& Attributes::get(std::string_view) const;
template const std::string& Attributes::get(std::string_view) const;
template const std::vector<std::int64_t>& Attributes::get(std::string_view) const;
template const std::vector<float>& Attributes::get(std::string_view) const;
template const std::vector<std::string>& Attributes::get(std::string_view) const;
template const Tensor& Attributes::get(std::string_view) const;

bool Attributes::identical(const Attributes& other) const {
  if (values_.size() != other.values_.size()) return false;
  for (auto a = values_.begin(), b = other.values_.begin(); a != values_.end(); ++a, ++b) {
    if (a->first != b->first || !identical_values(a->second, b->second)) return false;
  }
  return true;
}

std::string to_string(const AttributeValue& value) {
  switch (kind_of(value)) {
    case AttributeKind::kInt:
      return fmt::format("{}", std::get<std::int64_t>(value));
    case AttributeKind::kFloat:
      return fmt::format("{}f", std::get<float>(value));
    case AttributeKind::kString:
      return fmt::format("\"{}\"", printable(std::get<std::string>(value)));
    case AttributeKind::kInts:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<std::int64_t>>(value), ", "));
    case AttributeKind::kFloats:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<float>>(value), ", "));
    case AttributeKind::kStrings: {
      std::string out = "[";
      for (const std::string& s : std::get<std::vector<std::string>>(value)) {
        out += (out.size() > 1 ? ", \"" : "\"") + printable(s) + "\"";
      }
      return out + "]";
    }
    case AttributeKind::kTensor:
      return to_string(std::get<Tensor>(value).type());
  }
  return {};
}

}  // namespace gcompile::ir
