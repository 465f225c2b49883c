#include "codegen/loops/size_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/loops/code_text.h"

namespace gcompile {

std::string SizeParameters::operator()(ir::Dim size) {
  if (size.is_constant()) return fmt::format("{}", size.constant());
  auto at = std::find(sizes_.begin(), sizes_.end(), size);
  if (at == sizes_.end()) at = sizes_.insert(at, size);
  const auto index = static_cast<std::size_t>(at - sizes_.begin());
  mentioned_.insert(index);
  return name(index);
}

std::string SizeParameters::as_int(ir::Dim size) {
  return size.is_constant() ? (*this)(size) : fmt::format("static_cast<int>({})", (*this)(size));
}

std::string SizeParameters::name(std::size_t index) { return size_symbol(index); }

std::string SizeParameters::list(std::initializer_list<ir::Dim> sizes) {
  std::string text;
  for (const ir::Dim size : sizes) text += (text.empty() ? "" : ", ") + (*this)(size);
  return text;
}

SizeParameters::Key SizeParameters::key_of(const ir::Scalar& number) {
  return {number.type == ir::ElementType::kFloat64, number.as_double()};
}

void SizeParameters::name_number(const ir::Scalar& value, std::string parameter, std::string text) {
  numbers_[key_of(value)] = {std::move(parameter), std::move(text)};
}

bool SizeParameters::is_named(const ir::Scalar& number) const {
  return ir::is_float(number.type) && numbers_.count(key_of(number)) > 0;
}

const std::string& SizeParameters::operator()(const ir::Scalar& named) {
  const Number& number = numbers_.at(key_of(named));
  mentioned_numbers_.insert(number.parameter);
  return number.text;
}

std::set<std::size_t> SizeParameters::take_mentioned() { return std::exchange(mentioned_, {}); }

std::set<std::string> SizeParameters::take_mentioned_numbers() {
  return std::exchange(mentioned_numbers_, {});
}

}  // namespace gcompile
