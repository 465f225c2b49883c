#include "codegen/memory/parts.h"

#include <algorithm>
#include <numeric>

#include "base/diagnostics.h"

namespace gcompile::memory {
namespace {

/// Lives nested in one another could otherwise be split as many times as there are blocks.
constexpr int64_t kDepth = 100;

class Splitter {
 public:
  explicit Splitter(const PlacementProblem& whole) {
    for (const Block& block : whole.blocks) alignment_ = std::max(alignment_, block.alignment);
    result_.settled.assign(whole.blocks.size(), -1);
    Part part;
    part.problem = whole;
    part.blocks.resize(whole.blocks.size());
    work_left_ = kDepth * static_cast<int64_t>(whole.blocks.size());
    std::iota(part.blocks.begin(), part.blocks.end(), 0);
    open_.push_back(std::move(part));
  }

  Parts run() {
    while (!open_.empty()) {
      Part part = std::move(open_.back());
      open_.pop_back();
      work_left_ -= static_cast<int64_t>(part.blocks.size());
      if (part.blocks.empty()) continue;
      if (work_left_ < 0 || !divide(part)) result_.parts.push_back(std::move(part));
    }
    return std::move(result_);
  }

 private:
  /// False if there is nothing to divide. Else its pieces are open, the first of them on top.
  bool divide(const Part& part) {
    const std::vector<int32_t> piece_of = number_pieces(part.problem);
    const auto count = static_cast<size_t>(piece_of.back()) + 1;
    std::vector<int32_t> begin(count + 1, 0);
    for (size_t s = 0; s < piece_of.size(); ++s)
      begin[static_cast<size_t>(piece_of[s]) + 1] = static_cast<int32_t>(s) + 1;
    std::vector<Piece> pieces(count);
    bool settled = false;
    for (size_t i = 0; i < part.blocks.size(); ++i) {
      const Block& block = part.problem.blocks[i];
      const auto p = static_cast<size_t>(piece_of[static_cast<size_t>(block.begin)]);
      const bool spans = block.begin == begin[p] && block.end == begin[p + 1];
      if (spans && block.size % alignment_ == 0) {
        result_.settled[static_cast<size_t>(part.blocks[i])] = part.base + pieces[p].settled_bytes;
        pieces[p].settled_bytes += block.size;
        result_.settled_height = std::max(result_.settled_height, part.base + pieces[p].settled_bytes);
        settled = true;
      } else {
        pieces[p].members.push_back(i);
      }
    }
    if (count == 1 && !settled) return false;
    for (size_t p = count; p-- > 0;) open_.push_back(cut_out(part, pieces[p]));
    return true;
  }

  struct Piece {
    int64_t settled_bytes = 0;
    std::vector<size_t> members;
  };

  /// By section; a piece ends where no block crosses into the next section.
  static std::vector<int32_t> number_pieces(const PlacementProblem& problem) {
    const auto sections = static_cast<size_t>(problem.section_count);
    std::vector<int32_t> crossing(sections + 1, 0);
    for (const Block& block : problem.blocks) {
      ++crossing[static_cast<size_t>(block.begin) + 1];
      --crossing[static_cast<size_t>(block.end)];
    }
    std::vector<int32_t> piece_of(sections, 0);
    int32_t live = 0;
    for (size_t s = 1; s < sections; ++s) {
      live += crossing[s];
      piece_of[s] = piece_of[s - 1] + (live == 0 ? 1 : 0);
    }
    return piece_of;
  }

  static Part cut_out(const Part& part, const Piece& piece) {
    Part result;
    result.base = part.base + piece.settled_bytes;
    std::vector<Block> blocks;
    std::vector<Life> lives;
    for (size_t i : piece.members) {
      blocks.push_back(part.problem.blocks[i]);
      lives.push_back({blocks.back().begin, blocks.back().end});
      result.blocks.push_back(part.blocks[i]);
    }
    result.problem = squeeze_time(std::move(blocks), lives);
    return result;
  }

  int64_t work_left_ = 0;
  int64_t alignment_ = 1;  // the largest: all bases are its multiples
  std::vector<Part> open_;
  Parts result_;
};

}  // namespace

Parts split_problem(const PlacementProblem& problem) {
  GC_CHECK(!problem.has_fixed);
  return Splitter(problem).run();
}

}  // namespace gcompile::memory
