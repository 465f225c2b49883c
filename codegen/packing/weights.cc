#include "codegen/packing/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diagnostics.h"

namespace gcompile {
namespace {

/// Tells entries of one size apart before their bytes are compared.
std::uint64_t hash_of(const char* bytes, std::size_t size) {
  constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd
  constexpr std::size_t kLanes = 4;
  std::uint64_t lanes[kLanes] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + sizeof lanes <= size; at += sizeof lanes) {
    std::uint64_t words[kLanes];
    std::memcpy(words, bytes + at, sizeof words);
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * kPrime;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  std::uint64_t hash = size;
  for (const std::uint64_t lane : lanes) hash = (hash ^ lane) * kPrime;
  for (; at < size; ++at) hash = (hash ^ static_cast<unsigned char>(bytes[at])) * kPrime;
  return hash;
}

/// Row-major bytes of a vector as a constant that can be packed.
template <class T>
ir::Tensor tensor_of(const std::vector<T>& values, ir::ElementType element) {
  ir::Tensor tensor(ir::TensorType{element, {static_cast<std::int64_t>(values.size())}});
  if (!values.empty()) std::memcpy(tensor.mutable_bytes().data(), values.data(), values.size() * sizeof(T));
  return tensor;
}

std::size_t aligned(std::size_t bytes) {
  constexpr auto kUnit = static_cast<std::size_t>(WeightBlob::kAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

int WeightBlob::add_entry(Packing packing, std::string name, std::string what) {
  Entry entry;
  entry.name = std::move(name);
  entry.what = std::move(what);
  // An empty constant that a kernel takes has an address all the same.
  entry.bytes = std::max<std::int64_t>(packing.bytes, 1);
  entries_.push_back(std::move(entry));
  packings_.push_back(std::move(packing));
  return static_cast<int>(entries_.size()) - 1;
}

void WeightBlob::keep(std::size_t count) {
  GC_CHECK(places_.empty() && count <= entries_.size());
  entries_.resize(count);
  packings_.resize(count);
  const auto is_gone = [&](int entry) { return static_cast<std::size_t>(entry) >= count; };
  if (zero_entry_ >= 0 && is_gone(zero_entry_)) zero_entry_ = -1;
  for (auto at = by_source_.begin(); at != by_source_.end();)
    at = is_gone(at->second) ? by_source_.erase(at) : std::next(at);
}

int WeightBlob::add(Packing packing, std::string name, std::string what) {
  GC_CHECK(places_.empty());
  Key key{packing.source.bytes().data(),
          fmt::format("{} {}", to_string(packing.source.type()), packing.format)};
  const auto [at, inserted] = by_source_.try_emplace(std::move(key), static_cast<int>(entries_.size()));
  return inserted ? add_entry(std::move(packing), std::move(name), std::move(what)) : at->second;
}

int WeightBlob::add(std::vector<std::uint8_t> bytes, std::string name, std::string what) {
  return add(pack_as_is(tensor_of(bytes, ir::ElementType::kUInt8)), std::move(name), std::move(what));
}

int WeightBlob::add_tensor(const ir::Tensor& tensor, std::string name) {
  return add(pack_as_is(tensor), std::move(name), to_string(tensor.type()));
}

int WeightBlob::add_number(const ir::Scalar& value, std::string name) {
  const int entry = add(pack_as_is(ir::Tensor::filled({value.type, {1}}, value)), std::move(name),
                        fmt::format("{}, a number", name_of(value.type)));
  entries_[static_cast<std::size_t>(entry)].is_alone = true;
  return entry;
}

int WeightBlob::add_floats(const std::vector<float>& values, std::string name, std::string what) {
  return add(pack_as_is(tensor_of(values, ir::ElementType::kFloat32)), std::move(name), std::move(what));
}

int WeightBlob::add_halves(const std::vector<float>& values, ir::ElementType type, std::string name,
                           std::string what) {
  GC_CHECK(type == ir::ElementType::kFloat16 || type == ir::ElementType::kBFloat16);
  MatrixView row;
  row.columns = 1;
  row.inner = static_cast<std::int64_t>(values.size());
  return add(pack_rows(tensor_of(values, ir::ElementType::kFloat32), row, row.inner, type), std::move(name),
             std::move(what));
}

std::vector<int> WeightBlob::take(WeightBlob other) {
  GC_CHECK(other.places_.empty());
  std::vector<int> added;
  for (std::size_t i = 0; i < other.entries_.size(); ++i) {
    Entry& entry = other.entries_[i];
    added.push_back(static_cast<int>(i) == other.zero_entry_
                        ? zeros(entry.bytes)
                        : add(std::move(other.packings_[i]), std::move(entry.name), std::move(entry.what)));
    if (entry.is_alone) entries_[static_cast<std::size_t>(added.back())].is_alone = true;
  }
  return added;
}

int WeightBlob::zeros(std::int64_t bytes) {
  if (zero_entry_ < 0) zero_entry_ = add_entry({}, "zeros", "read at image borders");
  Entry& entry = entries_[static_cast<std::size_t>(zero_entry_)];
  entry.bytes = std::max(entry.bytes, bytes);
  return zero_entry_;
}

ZeroedMemory WeightBlob::finish(std::size_t front) {
  GC_CHECK(places_.empty());
  std::size_t most = front;
  for (const Entry& entry : entries_) most += aligned(static_cast<std::size_t>(entry.bytes));
  ZeroedMemory payload(most);
  std::size_t end = front;
  std::vector<Entry> merged;
  std::multimap<std::pair<std::int64_t, std::uint64_t>, std::size_t> by_content;  // bytes, hash
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const auto size = static_cast<std::size_t>(entry.bytes);
    const std::size_t begin = end;
    end += aligned(size);
    char* written = payload.data() + begin;
    if (packings_[i].bytes > 0) {
      packings_[i].write(packings_[i].source, std::as_writable_bytes(std::span(
                                                  written, static_cast<std::size_t>(packings_[i].bytes))));
    }
    packings_[i].source.rest();
    packings_[i] = {};
    places_.push_back(merged.size());
    if (static_cast<int>(i) != zero_entry_ && !entry.is_alone) {  // whose size is only now known
      const std::pair key{entry.bytes, hash_of(written, size)};
      const auto [first, last] = by_content.equal_range(key);
      const auto same = std::find_if(first, last, [&](const auto& other) {
        const auto offset = static_cast<std::size_t>(merged[other.second].offset);
        return std::memcmp(payload.data() + front + offset, written, size) == 0;
      });
      if (same != last) {
        places_.back() = same->second;
        std::memset(written, 0, size);
        end = begin;
        continue;
      }
      by_content.emplace(key, merged.size());
    }
    entry.offset = static_cast<std::int64_t>(begin - front);
    merged.push_back(std::move(entry));
  }
  by_source_.clear();
  entries_ = std::move(merged);
  payload.shrink(end);
  return payload;
}

}  // namespace gcompile
