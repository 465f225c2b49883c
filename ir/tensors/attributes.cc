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

AttributeKind kind_of(const AttributeValue& value) { return static_cast<AttributeKind>(value.index()); }

Attributes::Attributes() = default;
Attributes::Attributes(const Attributes&) = default;
Attributes::Attributes(Attributes&&) noexcept = default;
Attributes& Attributes::operator=(const Attributes&) = default;
Attributes& Attributes::operator=(Attributes&&) noexcept = default;
Attributes::~Attributes() = default;

bool Attributes::has(std::string_view name) const { return values_.find(name) != values_.end(); }

void Attributes::set(std::string name, AttributeValue value) {
  values_.insert_or_assign(std::move(name), std::move(value));
}

void Attributes::erase(std::string_view name) {
  if (const auto at = values_.find(name); at != values_.end()) values_.erase(at);
}

template <class T>
const T& Attributes::get(std::string_view name) const {
  const auto at = values_.find(name);
  GC_CHECK(at != values_.end() && std::holds_alternative<T>(at->second));
  return std::get<T>(at->second);
}

std::int64_t Attributes::int_of(std::string_view name) const { return get<std::int64_t>(name); }
float Attributes::float_of(std::string_view name) const { return get<float>(name); }
const std::string& Attributes::string_of(std::string_view name) const { return get<std::string>(name); }
const std::vector<std::int64_t>& Attributes::ints_of(std::string_view name) const {
  return get<std::vector<std::int64_t>>(name);
}
const std::vector<float>& Attributes::floats_of(std::string_view name) const {
  return get<std::vector<float>>(name);
}
const std::vector<std::string>& Attributes::strings_of(std::string_view name) const {
  return get<std::vector<std::string>>(name);
}
const Tensor& Attributes::tensor_of(std::string_view name) const { return get<Tensor>(name); }

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
