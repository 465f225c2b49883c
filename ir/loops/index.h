#pragma once
// The index language of fused kernels: integer expressions over iteration axes. Canonical form is a sum
//   constant + sum(coefficient * atom),   atom = axis | floor(sum / c) | sum mod c | loaded integer
// so that equal indices compare equal and affine ones are recognised at sight (DESIGN law 1).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/sizes/dim.h"

namespace gcompile::ir {

class Index;

/// Half-open interval of values, [low, high).
struct Range {
  Dim low = 0;
  Dim high = 0;
  bool operator==(const Range&) const = default;
};

/// The indivisible parts of an index.
struct IndexAtom {
  enum class Kind : std::uint8_t { kAxis, kFloorDiv, kMod, kLoaded };
  Kind kind = Kind::kAxis;
  int axis = 0;                        // kAxis: iteration axis. kLoaded: id of the scalar in the owning Dag
  Dim divisor = 1;                     // kFloorDiv, kMod
  std::shared_ptr<const Index> inner;  // kFloorDiv, kMod
  Range range{0, 0};                   // kLoaded: values it is known or checked to take
};

class Index {
 public:
  struct Term {
    Dim coefficient;
    IndexAtom atom;
  };

  Index() = default;
  Index(Dim constant) : constant_(constant) {}  // NOLINT: a size is an index
  template <Number T>
  Index(T constant) : constant_(constant) {}  // NOLINT: an integer is an index
  static Index axis(int axis);
  static Index loaded(int scalar, Range range);
  static Index of(const IndexAtom& atom);

  Dim constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  /// Only axes, no division, remainder or loaded part.
  bool is_affine() const;
  /// The axis when the index is exactly that axis.
  std::optional<int> as_axis() const;
  /// Coefficient of a bare axis (0 when absent).
  Dim coefficient_of(int axis) const;
  /// Whether the axis occurs anywhere, also inside divisions. Loaded parts are the Dag's to answer.
  bool mentions(int axis) const;
  bool has_loaded() const;

  Index operator+(const Index& other) const;
  Index operator-(const Index& other) const;
  Index operator*(Dim factor) const;
  bool operator==(const Index& other) const { return compare(other) == 0; }
  bool operator<(const Index& other) const { return compare(other) < 0; }
  int compare(const Index& other) const;

 private:
  void add(Dim coefficient, const IndexAtom& atom);
  Dim constant_ = 0;
  std::vector<Term> terms_;  // sorted by atom, no zero coefficients
};

/// Values the index can take when axis i runs over axes[i]. Exact for single terms, an enclosure otherwise.
Range range_of(const Index& index, std::span<const Range> axes);
/// floor(index / divisor), simplified by divisibility and by the ranges of the axes. divisor > 0.
Index floor_div(const Index& index, Dim divisor, std::span<const Range> axes);
/// index mod divisor in [0, divisor), simplified likewise.
Index modulo(const Index& index, Dim divisor, std::span<const Range> axes);

/// Replaces every axis i by axes[i] (indices over other axes with ranges `ranges`) and loaded scalars by
/// `scalar(id)`; simplifies on the way.
Index substitute(const Index& index, std::span<const Index> axes, std::span<const Range> ranges,
                 const std::function<int(int)>& scalar);

/// Undoes divisions that meet again: k*b*floor(e/b) + k*(e mod b) becomes k*e.
Index recombine(const Index& index, std::span<const Range> ranges);

/// sum of strides[i] * index[i].
Index address_of(std::span<const Index> index, std::span<const Dim> strides);

/// Row-major position of `index` in `shape`.
Index linearise(std::span<const Index> index, std::span<const Dim> shape);
/// Coordinates in `shape` of a row-major position.
std::vector<Index> delinearise(const Index& position, std::span<const Dim> shape,
                               std::span<const Range> axes);

/// In parentheses where it is more than one.
std::string name_of_size(Dim size);
/// "2*i0 + i1/4 + 3"; axis_name, scalar_name and size_name print the leaves.
std::string to_string(const Index& index);
std::string to_string(const Index& index, const std::function<std::string(int)>& axis_name,
                      const std::function<std::string(int)>& scalar_name,
                      const std::function<std::string(Dim)>& size_name = name_of_size);

std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t ceil_div(std::int64_t a, std::int64_t b);

/// [0, extent) for every axis.
std::vector<Range> full_ranges(std::span<const Dim> extents);

}  // namespace gcompile::ir
