#pragma once
// Sizes that are known when a model runs: polynomials over symbols, floor-divisions by constants, minima and
// maxima of such (DESIGN law 13). Canonical, so that equal sizes compare equal, and a multiple is a property
// of coefficients. A constant is a plain number and allocates nothing.
//
// After the affine forms of isl and the SymInt expressions of PyTorch, without their division by sizes.

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gcompile::ir {

/// Numbers in sizes stay below it: they have opposites, and two of them a sum.
constexpr std::int64_t kDimLimit = std::int64_t{1} << 62;

struct DimTerm;

class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t constant) : constant_(constant) {}  // NOLINT: a number is a size
  static Dim symbol(int number);

  bool is_constant() const { return !terms_; }
  /// nullopt: it depends on symbols.
  std::optional<std::int64_t> as_constant() const;
  std::int64_t constant() const { return constant_; }
  const std::vector<DimTerm>& terms() const;
  /// The symbol that it is, with nothing else.
  std::optional<int> as_symbol() const;
  /// Also inside divisions, minima and maxima.
  bool mentions(int symbol) const;

  /// The value for values of all symbols.
  std::int64_t at(const std::function<std::int64_t(int)>& value_of) const;
  /// With something in place of each symbol.
  Dim replaced(const std::function<Dim(int)>& by) const;

  friend bool operator==(const Dim& a, const Dim& b) { return compare(a, b) == 0; }
  friend bool operator<(const Dim& a, const Dim& b) { return compare(a, b) < 0; }
  /// In an order of form alone: neither of values nor of addresses.
  static std::strong_ordering compare(const Dim& a, const Dim& b);

 private:
  friend class DimBuilder;
  std::int64_t constant_ = 0;
  std::shared_ptr<const std::vector<DimTerm>> terms_;  // sorted; null: none
};

/// What a product consists of.
struct DimAtom {
  enum class Kind : std::uint8_t { kSymbol, kFloorDiv, kMin, kMax };
  Kind kind = Kind::kSymbol;
  int symbol = 0;            // kSymbol
  std::int64_t divisor = 1;  // kFloorDiv, above 1
  Dim a, b;                  // kFloorDiv: of a. kMin, kMax: of both, in order
};
std::strong_ordering compare(const DimAtom& a, const DimAtom& b);

/// A coefficient other than 0 times a product of atoms, which are sorted and may come several times.
struct DimTerm {
  std::int64_t coefficient = 1;
  std::vector<DimAtom> atoms;
};

/// These throw OperatorError where a number reaches kDimLimit or a form grows beyond 32 terms, products of
/// four atoms, or eight levels of divisions, minima and maxima.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
/// floor(a / divisor), divisor > 0: multiples leave the division, divisions of divisions are one.
Dim floor_div(const Dim& a, std::int64_t divisor);
Dim ceil_div(const Dim& a, std::int64_t divisor);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

/// a / b where b divides a as a polynomial: for every value of the symbols.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);
/// The greatest number that divides it whatever the symbols are; 0 of 0.
std::int64_t content(const Dim& a);

/// "2*h*w + floor((s + 1) / 2)".
std::string to_string(const Dim& a, const std::function<std::string(int)>& name_of);

}  // namespace gcompile::ir
