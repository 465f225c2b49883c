#include "codegen/choice/trained_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gcompile {
namespace {

/// Digits of the shortest decimal that reads back as the float. A number that somebody wrote has few; of
/// those that were computed, three in a hundred have less than seven, or fifteen of float64.
std::ptrdiff_t digits_of(double value, ir::ElementType type) {
  std::string shortest = type == ir::ElementType::kFloat64
                             ? fmt::format("{}", std::abs(value))
                             : fmt::format("{}", std::abs(static_cast<float>(value)));
  const std::size_t end = std::min(shortest.find('e'), shortest.size());
  shortest.resize(end);
  const std::size_t first = std::min(shortest.find_first_of("123456789"), shortest.size());
  return std::count_if(shortest.begin() + static_cast<std::ptrdiff_t>(first), shortest.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether the number is a whole one up to the rounding of its type. Larger ones are such by chance.
bool is_small_and_whole(double number, ir::ElementType type) {
  constexpr double kLargest = 4096;
  const double rounding = type == ir::ElementType::kFloat64 ? 0x1p-50 : 0x1p-22;
  const double whole = std::round(number);
  return whole >= 1 && whole <= kLargest && std::abs(number - whole) <= whole * rounding;
}

std::ptrdiff_t digits_of_computed(ir::ElementType type) { return type == ir::ElementType::kFloat64 ? 15 : 7; }

/// Whether few digits read back as the number of 16 bits: two for float16, one for bfloat16, of whose numbers
/// a third are the rounding of one with two.
bool is_short_decimal(double number, ir::ElementType type) {
  const double size = std::abs(number);
  const int digits = type == ir::ElementType::kFloat16 ? 2 : 1;
  const double unit = std::pow(10, std::floor(std::log10(size)) + 1 - digits);
  return ir::Scalar::of_real(type, std::round(size / unit) * unit).real == size;
}

/// A sixth, the root of two, one through the root of 64, with as many digits as the type has.
bool is_fraction_or_root(double size, ir::ElementType type) {
  return digits_of(size, type) >= digits_of_computed(type) &&
         (is_small_and_whole(1 / size, type) || is_small_and_whole(size * size, type) ||
          is_small_and_whole(1 / (size * size), type));
}

/// What keeps a divisor off zero: 1e-5, 5e-4.
constexpr double kLargestEpsilon = 1e-3;

bool is_epsilon(double size, ir::ElementType type) {
  return size < kLargestEpsilon && digits_of(size, type) <= 2;
}

}  // namespace

TrainedNumbers::TrainedNumbers(std::map<double, std::string> with_axes,
                               std::map<double, std::string> without_axes, std::set<double> written,
                               bool has_16_bits)
    : with_axes_(std::move(with_axes)),
      without_axes_(std::move(without_axes)),
      written_(std::move(written)),
      has_16_bits_(has_16_bits) {}

std::optional<std::string> TrainedNumbers::name_of(const ir::Scalar& value) const {
  const double number = value.as_double();
  const std::optional<ir::ElementType> type = type_of_numbers_like(value);
  if (!type || number == std::trunc(number)) return std::nullopt;
  // Denormal numbers are zeros among the weights.
  if (!std::isnormal(*type == ir::ElementType::kFloat64 ? number : static_cast<float>(number)))
    return std::nullopt;
  const double size = std::abs(number);
  const bool has_digits = *type == ir::ElementType::kFloat32 || *type == ir::ElementType::kFloat64;
  if (has_digits ? is_epsilon(size, *type) || is_fraction_or_root(size, *type)
                 : size < kLargestEpsilon && is_short_decimal(size, *type))
    return std::nullopt;
  if (const auto at = with_axes_.find(number); at != with_axes_.end()) return at->second;
  const bool is_short =
      has_digits ? digits_of(number, *type) < digits_of_computed(*type) : is_short_decimal(size, *type);
  if (is_short || written_.count(number) > 0) return std::nullopt;
  const auto at = without_axes_.find(number);
  return at != without_axes_.end() ? at->second : "";
}

std::optional<ir::ElementType> TrainedNumbers::type_of_numbers_like(const ir::Scalar& value) const {
  if (!is_float(value.type) || bits_of(value.type) < 16) return std::nullopt;
  if (value.type != ir::ElementType::kFloat32) return value.type;
  if (has_16_bits_) {
    for (const ir::ElementType type : {ir::ElementType::kBFloat16, ir::ElementType::kFloat16}) {
      if (ir::Scalar::of_real(type, value.real).real == value.real) return type;
    }
  }
  return value.type;
}

}  // namespace gcompile
