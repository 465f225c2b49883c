#pragma once
// Sizes that are known when a model runs: polynomials over symbols, floor-divisions by constants, minima and
// maxima of such (DESIGN law 13). Canonical, so that equal sizes compare equal, and a multiple is a property
// of coefficients. A constant is a plain number and allocates nothing.
//
// After the affine expressions of isl and the SymInt expressions of PyTorch, without their division by sizes.

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gcompile::ir {

/// Numbers in sizes stay below it: they have opposites, and two of them a sum.
constexpr std::int64_t kDimLimit = std::int64_t{1} << 62;

struct DimTerm;
class Dim;

template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool>;
/// Operands of which at least one is a size.
template <class A, class B>
concept WithDim = (std::same_as<A, Dim> && (std::same_as<B, Dim> || Number<B>)) ||
                  (std::same_as<B, Dim> && Number<A>);

/// A size in one word: a number, or the number of a formula, of which the process keeps one of each kind for
/// good (a model has some thousands). The compiler runs in one thread.
///
/// A size reads like a number wherever numbers are all that is understood; there a formula is refused, by an
/// OperatorError that says so, and never given a number that it may not be. `==` means equal for all values
/// of the symbols. `<` and the like are decided by the bounds in force (SizesScope), or refused.
class Dim {
 public:
  constexpr Dim() = default;
  template <Number T>
  constexpr Dim(T number) : word_(static_cast<std::int64_t>(number)) {  // NOLINT: a number is a size
    if (word_ >= kFirstFormula && word_ < kEndFormula) refuse_number();
  }
  static Dim symbol(int number);

  /// Equal for equal sizes, and for them alone. The word of a formula depends on what was made before it:
  /// never sort output by it.
  constexpr std::int64_t word() const { return word_; }
  constexpr bool is_constant() const { return word_ < kFirstFormula || word_ >= kEndFormula; }
  /// nullopt: it depends on symbols.
  std::optional<std::int64_t> as_constant() const;
  constexpr operator std::int64_t() const {  // NOLINT
    if (!is_constant()) refuse_formula();
    return word_;
  }
  /// What stands beside the terms.
  std::int64_t constant() const;
  const std::vector<DimTerm>& terms() const;
  /// The symbol that it is, with nothing else.
  std::optional<int> as_symbol() const;
  /// Also inside divisions, minima and maxima.
  bool mentions(int symbol) const;

  /// The value for values of all symbols.
  std::int64_t at(const std::function<std::int64_t(int)>& value_of) const;
  /// With something in place of each symbol.
  Dim replaced(const std::function<Dim(int)>& by) const;

  /// In an order of how they are written: neither of values nor of addresses.
  static std::strong_ordering compare(Dim a, Dim b);
  static constexpr bool is_same(Dim a, Dim b) { return a.word_ == b.word_; }

  // What the operators below do. They throw OperatorError where a number does not fit, where one in a formula
  // reaches kDimLimit, or a formula grows beyond 64 terms, products of eight atoms, or eight levels of
  // divisions, minima and maxima.
  static Dim sum(Dim a, Dim b) {
    std::int64_t number;
    if (are_constant(a, b) && !__builtin_add_overflow(a.word_, b.word_, &number)) return number;
    return sum_of_formulas(a, b);
  }
  static Dim difference(Dim a, Dim b) {
    std::int64_t number;
    if (are_constant(a, b) && !__builtin_sub_overflow(a.word_, b.word_, &number)) return number;
    return difference_of_formulas(a, b);
  }
  static Dim product(Dim a, Dim b) {
    std::int64_t number;
    if (are_constant(a, b) && !__builtin_mul_overflow(a.word_, b.word_, &number)) return number;
    return product_of_formulas(a, b);
  }
  /// Numbers divide as in C++. A formula that is never negative is divided by a number, rounded down, and by
  /// a formula only when that divides a for every value. Else refused.
  static Dim quotient(Dim a, Dim b);
  static Dim remainder(Dim a, Dim b);
  /// Whether a < b for all values (true) or none (false) within the bounds in force; otherwise refused.
  static bool is_less(Dim a, Dim b) { return are_constant(a, b) ? a.word_ < b.word_ : is_less_formula(a, b); }

  Dim& operator+=(Dim other) { return *this = sum(*this, other); }
  Dim& operator-=(Dim other) { return *this = difference(*this, other); }
  Dim& operator*=(Dim other) { return *this = product(*this, other); }
  Dim& operator/=(Dim other) { return *this = quotient(*this, other); }
  Dim& operator++() { return *this = sum(*this, 1); }
  Dim& operator--() { return *this = difference(*this, 1); }
  Dim operator-() const { return difference(Dim(), *this); }

 private:
  friend class DimBuilder;
  // Numbers that no size is: so near the lowest one.
  static constexpr std::int64_t kFirstFormula =
      std::numeric_limits<std::int64_t>::min() + (std::int64_t{1} << 40);
  static constexpr std::int64_t kEndFormula = kFirstFormula + (std::int64_t{1} << 40);
  static constexpr bool are_constant(Dim a, Dim b) { return a.is_constant() && b.is_constant(); }
  static Dim sum_of_formulas(Dim a, Dim b);
  static Dim difference_of_formulas(Dim a, Dim b);
  static Dim product_of_formulas(Dim a, Dim b);
  static bool is_less_formula(Dim a, Dim b);
  [[noreturn]] static void refuse_number();
  [[noreturn]] static void refuse_formula();
  std::int64_t word_ = 0;
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

template <class A, class B>
requires WithDim<A, B> Dim operator+(A a, B b) { return Dim::sum(a, b); }
template <class A, class B>
requires WithDim<A, B> Dim operator-(A a, B b) { return Dim::difference(a, b); }
template <class A, class B>
requires WithDim<A, B> Dim operator*(A a, B b) { return Dim::product(a, b); }
template <class A, class B>
requires WithDim<A, B> Dim operator/(A a, B b) { return Dim::quotient(a, b); }
template <class A, class B>
requires WithDim<A, B> Dim operator%(A a, B b) { return Dim::remainder(a, b); }
template <class A, class B>
requires WithDim<A, B>
constexpr bool operator==(A a, B b) { return Dim::is_same(a, b); }
template <class A, class B>
requires WithDim<A, B>
bool operator<(A a, B b) { return Dim::is_less(a, b); }
template <class A, class B>
requires WithDim<A, B>
bool operator>(A a, B b) { return Dim::is_less(b, a); }
template <class A, class B>
requires WithDim<A, B>
bool operator<=(A a, B b) { return !Dim::is_less(b, a); }
template <class A, class B>
requires WithDim<A, B>
bool operator>=(A a, B b) { return !Dim::is_less(a, b); }

/// For all values within the bounds in force; false where that is not known.
bool always_less(Dim a, Dim b);
bool always_less_equal(Dim a, Dim b);

/// floor(a / divisor), divisor > 0: multiples leave the division, divisions of divisions are one.
Dim floor_div(Dim a, std::int64_t divisor);
Dim ceil_div(Dim a, std::int64_t divisor);
/// Simplified to one argument where the bounds in force decide.
Dim min(Dim a, Dim b);
Dim max(Dim a, Dim b);

/// a / b where b divides a as a polynomial: for every value of the symbols.
std::optional<Dim> exact_quotient(Dim a, Dim b);
/// The greatest number that divides it whatever the symbols are; 0 of 0.
std::int64_t content(Dim a);

/// A way to write sizes down, in messages or in code.
struct DimSpelling {
  struct Name {
    std::string text;
    std::int64_t unit = 1;  // what the text says is so many times the symbol
  };
  std::function<Name(int symbol)> name;
  const char* times = " x ";
  std::function<std::string(Dim a, std::int64_t divisor)> quotient = nullptr;  // floor(a / divisor)
  std::function<std::string(bool is_min, const std::string& a, const std::string& b)> extreme = nullptr;
};
std::string to_string(Dim a, const DimSpelling& spelling);
/// "2 x height x width / 32 + floor((length + 1) / 2)".
DimSpelling plain_spelling(std::function<DimSpelling::Name(int symbol)> name);
/// The same with the names in force, "s0" without.
std::string to_string(Dim a);

using Shape = std::vector<Dim>;
Shape shape_of(std::span<const std::int64_t> numbers);
/// Refuses formulas.
std::vector<std::int64_t> numbers_of(std::span<const Dim> dims);
/// None of them is a formula.
bool are_constant(std::span<const Dim> dims);
std::string to_string(const Shape& shape);

}  // namespace gcompile::ir
