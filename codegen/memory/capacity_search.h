#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/memory/placement_problem.h"

namespace gcompile::memory {

/// Branch and bound for one capacity: is there a placement no higher than this?
///
/// State: for each section the height below which nothing more will be placed, and the bytes still to come.
/// The slack of a section (ceiling - height - bytes to come) is the waste it can still afford; no section may
/// go below zero.
///
/// Branching: take a valley of the skyline (a run of equal heights between higher neighbours) and a section
/// in it. Either one of the open blocks that cover the section rests exactly on the valley's floor, or nobody
/// does and the section's floor rises to the next offset at which anybody could be, at the cost of its slack.
/// These cases exclude each other, and every placement pushed down as far as it goes is among them. Sections
/// with a single case go first, and a section with none refutes the state.
///
/// When no open block crosses a border in time, the parts on its two sides are solved one after the other; a
/// part that fails returns to the decision that made it, past everything decided in other parts.
///
/// An open block that lives throughout a part may be moved to the part's ceiling, as what was above it can
/// slide down.
///
/// Own design; the section bounds and the splitting follow Moffitt, "MiniMalloc" (ASPLOS 2023).
class CapacitySearch {
 public:
  enum class Outcome { kFound, kImpossible, kOutOfWork };

  /// Which section is decided next, after those with a single case.
  enum class Focus {
    kFewestCases,   // refutes early: best if there is little slack
    kLowestValley,  // fills from the bottom, the first of the rank first: best if there is much
  };

  /// Blocks must be free (no fixed offsets).
  explicit CapacitySearch(const PlacementProblem& problem);

  /// Searches until `work_limit` elementary steps are used. `rank` orders the blocks: smaller is tried first.
  Outcome run(int64_t capacity, Focus focus, const std::vector<int32_t>& rank, int64_t work_limit);

  /// After kFound.
  const std::vector<int64_t>& offsets() const { return offset_; }
  int64_t work() const { return work_; }

 private:
  enum class Change : uint8_t { kHeight, kCeiling, kNextLow, kLow, kPlaced };
  struct TrailEntry {
    int64_t old_value;
    int32_t index;
    Change change;
  };
  /// A range of sections still to be solved. Cells form immutable lists, so that going back is forgetting.
  struct Part {
    int32_t begin;
    int32_t end;
    int32_t parent_frame;
    int32_t next;
  };
  struct Piece {
    int64_t slack;
    int32_t begin;
    int32_t end;
  };
  struct Frame {
    int32_t part;
    int32_t rest;  // the parts to solve afterwards
    size_t part_count;
    size_t trail_size;
    int32_t section;
    int64_t raise_to;  // -1: the section cannot afford it
    size_t choice_begin;
    size_t choice_next;
    size_t choice_end;
  };
  static constexpr int64_t kNoCost = std::numeric_limits<int64_t>::max();
  struct Choice {
    int32_t section = -1;
    /// Compared in turn; smaller is better.
    std::array<int64_t, 2> cost = {kNoCost, kNoCost};
    int64_t raise_to = -1;
    std::vector<int32_t> blocks;
  };

  struct BlockRange {
    const int32_t* first;
    const int32_t* last;
    const int32_t* begin() const { return first; }
    const int32_t* end() const { return last; }
  };
  BlockRange open_blocks(int32_t section) const {
    const int32_t* first = section_blocks_.data() + section_start_[static_cast<size_t>(section)];
    return {first, first + open_count_[static_cast<size_t>(section)]};
  }
  void reset(int64_t capacity);
  bool open_next_part();
  bool take_next_case();
  bool descend();
  void undo_to(size_t trail_size);
  void set_height(int32_t section, int64_t height);
  void close_block(int32_t block, int64_t offset);
  void place_on_floor(int32_t block);
  bool place_spanning_on_ceiling(int32_t begin, int32_t end);
  bool propagate();
  bool recheck(int32_t section);
  bool fits_in_order(int32_t section);
  void find_pieces(int32_t begin, int32_t end);
  void split(const Part& part, int32_t parent_frame, int32_t rest);
  bool choose(const Part& part, Choice& best);
  bool examine_valley(int32_t begin, int32_t end, Choice& best);
  bool weigh_section(int32_t section, int32_t cover, int64_t beside, int32_t favourite, Choice& best);
  bool has_open_twin(int32_t block) const {
    const int32_t twin = twin_before_[static_cast<size_t>(block)];
    return twin >= 0 && offset_[static_cast<size_t>(twin)] < 0;
  }

  const PlacementProblem& problem_;
  const std::vector<int32_t>* rank_ = nullptr;
  Focus focus_ = Focus::kFewestCases;
  int64_t work_ = 0;

  std::vector<int32_t> section_start_;          // into section_blocks_
  std::vector<int32_t> section_blocks_;         // the open ones of each section first
  std::vector<int32_t> open_count_;             // by section
  std::vector<int64_t> member_start_;           // by block, into member_
  std::vector<int32_t> member_;                 // by (block, section): its place in section_blocks_
  std::vector<std::vector<int32_t>> starting_;  // by section, the blocks that begin in it
  std::vector<int32_t> twin_before_;            // by block, an equal one that is placed first
  int64_t largest_alignment_ = 1;

  std::vector<int64_t> height_;    // by section
  std::vector<int64_t> ceiling_;   // by section
  std::vector<int64_t> next_low_;  // by section, the least low offset above its height
  std::vector<int64_t> to_come_;   // by section, bytes of open blocks
  std::vector<int32_t> crossing_;  // by section, open blocks that also live in the next one
  std::vector<int64_t> low_;       // by block, the lowest offset it can still have
  std::vector<int64_t> offset_;    // by block, -1 while open

  std::vector<TrailEntry> trail_;
  std::vector<Part> parts_;
  std::vector<Frame> frames_;
  std::vector<int32_t> choices_;
  int32_t agenda_ = -1;

  std::vector<int32_t> touched_;
  std::vector<int32_t> dirty_;
  std::vector<uint8_t> is_dirty_;
  std::vector<std::pair<int64_t, int64_t>> releases_;
  std::vector<Piece> pieces_;
  std::vector<int32_t> cover_;
  std::vector<int64_t> smallest_before_;
  std::vector<int64_t> smallest_after_;
};

}  // namespace gcompile::memory
