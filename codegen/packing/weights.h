#pragma once
// The weight blob: constants as kernels read them, packed once at compile time in a form that every
// instruction set level reads (DESIGN law 5), merged by content, 64-byte aligned. Entries are promises until
// finish(): what they hold is written once, where it stays.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/zeroed_memory.h"
#include "codegen/packing/packing.h"

namespace gcompile {

class WeightBlob {
 public:
  static constexpr std::int64_t kAlignment = 64;

  struct Entry {
    std::string name;  // of the constant in the model
    std::string what;  // "float32[64, 3, 3, 3], packed for convolution"
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    bool is_alone = false;  // never merged with equal bytes
  };

  /// Index of the entry; the same packing of the same tensor is one, and finish() merges equal bytes.
  int add(Packing packing, std::string name, std::string what);
  /// Bytes that are known already.
  int add(std::vector<std::uint8_t> bytes, std::string name, std::string what);
  /// The tensor's elements in row-major order, denormal float32 flushed to zero.
  int add_tensor(const ir::Tensor& tensor, std::string name);
  /// One number, which is never merged with an equal one: equal numbers need not be after further training.
  int add_number(const ir::Scalar& value, std::string name);
  int add_floats(const std::vector<float>& values, std::string name, std::string what);
  /// The same rounded to a floating type of 16 bits, to nearest even.
  int add_halves(const std::vector<float>& values, ir::ElementType type, std::string name, std::string what);
  /// Adds all entries of `other`; returns what add() would have returned for each.
  std::vector<int> take(WeightBlob other);
  /// An entry of at least `bytes` zero bytes (the zero row of border taps); grows to the largest request.
  int zeros(std::int64_t bytes);

  /// Forgets what was added behind the first `count` entries.
  void keep(std::size_t count);

  /// Before finish() as they were added, with their sizes;
  /// afterwards merged, in the same order, with offsets.
  const std::vector<Entry>& entries() const { return entries_; }
  /// After finish(): the place in entries() of what add() returned.
  std::size_t place_of(int added) const { return places_[static_cast<std::size_t>(added)]; }
  /// Writes the entries behind `front` zero bytes and returns both. Once; lets go of the tensors on the way.
  ZeroedMemory finish(std::size_t front = 0);

 private:
  using Key = std::pair<const std::byte*, std::string>;  // where the source lies, type and format

  int add_entry(Packing packing, std::string name, std::string what);

  std::vector<Entry> entries_;
  std::vector<Packing> packings_;  // the sources are kept until finish(), so that no address is used twice
  std::map<Key, int> by_source_;   // looked up, never walked
  std::vector<std::size_t> places_;
  int zero_entry_ = -1;
};

}  // namespace gcompile
