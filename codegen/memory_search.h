#pragma once

#include <cstdint>
#include <vector>

#include "codegen/memory_packing.h"

namespace gcompile::memory {

/// Branch and bound for one capacity: is there a placement no higher than this?
///
/// State: for each section the height below which nothing more will be placed, and the bytes still to come. The slack
/// of a section (capacity - height - bytes to come) is the waste it can still afford; no section may go below zero.
///
/// Branching: take a valley of the skyline (a run of equal heights between higher neighbours) and a section in it.
/// Either one of the open blocks that cover the section rests exactly on the valley's floor, or nobody does and the
/// section's floor rises to the next offset at which anybody could be, at the cost of its slack. These cases exclude
/// each other, and every placement pushed down as far as it goes is among them. Of all sections in valleys the one with
/// the fewest cases is taken, so that forced moves are made first; a section with none refutes the state.
///
/// When no open block crosses a border in time, the parts on its two sides are solved one after the other; a part that
/// fails returns to the decision that made it, past everything decided in other parts.
///
/// Own design; the section bounds and the splitting follow Moffitt, "MiniMalloc" (ASPLOS 2023).
class CapacitySearch {
 public:
  enum class Outcome { kFound, kImpossible, kOutOfWork };

  /// Blocks must be free (no fixed offsets).
  explicit CapacitySearch(const Packing& packing);

  /// Searches until `work_limit` elementary steps are used. `rank` orders the blocks: smaller is tried first.
  Outcome run(int64_t capacity, const std::vector<int32_t>& rank, int64_t work_limit);

  /// After kFound.
  const std::vector<int64_t>& offsets() const { return offset_; }
  int64_t work() const { return work_; }

 private:
  enum class Change : uint8_t { kHeight, kLow, kPlaced };
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
  struct Choice {
    int32_t section = -1;
    int32_t cases = 0;
    int64_t slack = 0;
    int64_t raise_to = -1;
    std::vector<int32_t> blocks;
  };

  void reset(int64_t capacity);
  bool open_next_part();
  bool take_next_case();
  bool descend();
  void undo_to(size_t trail_size);
  void set_height(int32_t section, int64_t height);
  void place(int32_t block);
  bool propagate();
  bool recheck(int32_t section);
  void split(const Part& part, int32_t parent_frame, int32_t rest);
  bool choose(const Part& part, Choice& best);
  bool examine_valley(int32_t begin, int32_t end, Choice& best);
  bool examine_section(int32_t section, Choice& best);

  const Packing& packing_;
  const std::vector<int32_t>* rank_ = nullptr;
  int64_t capacity_ = 0;
  int64_t work_ = 0;

  std::vector<int32_t> section_start_;  // into section_blocks_
  std::vector<int32_t> section_blocks_;

  std::vector<int64_t> height_;    // by section
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
  std::vector<int32_t> in_valley_;
  Choice scratch_;
};

struct SearchResult {
  int64_t work = 0;
  bool proven_optimal = false;
};

/// Tries to find a placement lower than `best`, down to the lower bound, and puts it into `best`. First asks for the
/// lower bound itself with several ranks in turn, then for capacities in between. A packing with fixed blocks, or with
/// more than 4 million (block, section) pairs, is left as it is: the greedy rules have to do.
SearchResult improve_placement(const Packing& packing, Placement& best, int64_t work_limit);

}  // namespace gcompile::memory
