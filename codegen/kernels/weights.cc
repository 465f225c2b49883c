#include "codegen/kernels/weights.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ir/diagnostics.h"
#include "ir/sha256.h"

namespace gcompile {
namespace {

float without_denormals(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? 0.0f : value; }

}  // namespace

int WeightBlob::add(std::vector<std::uint8_t> bytes, std::string name, std::string what) {
  if (bytes.empty()) bytes.resize(1);  // an empty constant that a kernel takes has an address all the same
  const std::string digest =
      sha256_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const auto [at, inserted] = by_content_.try_emplace(digest, static_cast<int>(entries_.size()));
  if (!inserted) return at->second;
  Entry entry;
  entry.name = std::move(name);
  entry.what = std::move(what);
  entry.bytes = static_cast<std::int64_t>(bytes.size());
  entries_.push_back(std::move(entry));
  contents_.push_back(std::move(bytes));
  return at->second;
}

int WeightBlob::add_tensor(const ir::Tensor& tensor, std::string name) {
  const auto source = tensor.bytes();
  std::vector<std::uint8_t> bytes(source.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), source.data(), bytes.size());
  if (tensor.element() == ir::ElementType::kFloat32) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, bytes.data() + i, sizeof value);
      value = without_denormals(value);
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  }
  return add(std::move(bytes), std::move(name), to_string(tensor.type()));
}

int WeightBlob::add_floats(const std::vector<float>& values, std::string name, std::string what) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = without_denormals(values[i]);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof value);
  }
  return add(std::move(bytes), std::move(name), std::move(what));
}

int WeightBlob::add_halves(const std::vector<float>& values, ir::ElementType type, std::string name,
                           std::string what) {
  GC_CHECK(type == ir::ElementType::kFloat16 || type == ir::ElementType::kBFloat16);
  const auto rounded = type == ir::ElementType::kFloat16 ? ir::float_to_half : ir::float_to_bfloat16;
  std::vector<std::uint8_t> bytes(values.size() * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = rounded(values[i]);
    std::memcpy(bytes.data() + i * sizeof(bits), &bits, sizeof bits);
  }
  return add(std::move(bytes), std::move(name), std::move(what));
}

int WeightBlob::zeros(std::int64_t bytes) {
  if (zero_entry_ < 0) {
    zero_entry_ = static_cast<int>(entries_.size());
    Entry entry;
    entry.name = "zeros";
    entry.what = "zeros read at image borders";
    entries_.push_back(entry);
    contents_.emplace_back();
  }
  auto& contents = contents_[static_cast<std::size_t>(zero_entry_)];
  if (static_cast<std::int64_t>(contents.size()) < bytes) contents.resize(static_cast<std::size_t>(bytes), 0);
  entries_[static_cast<std::size_t>(zero_entry_)].bytes = static_cast<std::int64_t>(contents.size());
  return zero_entry_;
}

std::vector<std::uint8_t> WeightBlob::finish() {
  std::vector<std::uint8_t> payload;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    payload.resize((payload.size() + kAlignment - 1) / kAlignment * kAlignment, 0);
    entries_[i].offset = static_cast<std::int64_t>(payload.size());
    payload.insert(payload.end(), contents_[i].begin(), contents_[i].end());
  }
  payload.resize((payload.size() + kAlignment - 1) / kAlignment * kAlignment, 0);
  return payload;
}

}  // namespace gcompile
