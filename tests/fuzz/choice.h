#pragma once
// What a mutator decides, one number at a time: drawn at random from a seed, or all combinations in turn.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gcompile::fuzz {

class Choice {
 public:
  /// Random numbers that depend on the seed alone (splitmix64; https://prng.di.unimi.it/splitmix64.c).
  static Choice random(std::uint64_t seed) { return Choice(seed, true); }
  /// The first of all combinations; next() goes on.
  static Choice first() { return Choice(0, false); }

  /// A number in [0, count); 0 when count is 0.
  std::size_t pick(std::size_t count) {
    if (count <= 1) return 0;
    if (random_) return static_cast<std::size_t>(draw() % count);
    if (at_ == taken_.size()) taken_.push_back({0, count});
    return taken_[at_++].value;
  }
  template <class List>
  const auto& one_of(const List& list) {
    return list[pick(std::size(list))];
  }

  /// Turns to the next combination; false after the last one. What is asked may depend on what was answered
  /// before, but on nothing else.
  bool next() {
    at_ = 0;
    while (!taken_.empty() && ++taken_.back().value >= taken_.back().count) taken_.pop_back();
    return !taken_.empty();
  }

 private:
  struct Digit {
    std::size_t value, count;
  };
  Choice(std::uint64_t seed, bool random) : state_(seed), random_(random) {}
  std::uint64_t draw() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
  bool random_;
  std::vector<Digit> taken_;
  std::size_t at_ = 0;
};

}  // namespace gcompile::fuzz
