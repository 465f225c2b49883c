#include "codegen/memory_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gcompile::memory {
namespace {

constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

bool same_rectangle(const Block& a, const Block& b) {
  return a.begin == b.begin && a.end == b.end && a.size == b.size && a.alignment == b.alignment;
}

}  // namespace

CapacitySearch::CapacitySearch(const Packing& packing) : packing_(packing) {
  const auto sections = static_cast<size_t>(packing.section_count);
  section_start_.assign(sections + 1, 0);
  for (const Block& block : packing.blocks) {
    for (int32_t s = block.begin; s < block.end; ++s) ++section_start_[static_cast<size_t>(s) + 1];
  }
  std::partial_sum(section_start_.begin(), section_start_.end(), section_start_.begin());
  section_blocks_.resize(static_cast<size_t>(section_start_.back()));
  std::vector<int32_t> next(section_start_.begin(), section_start_.end() - 1);
  for (size_t i = 0; i < packing.blocks.size(); ++i) {
    for (int32_t s = packing.blocks[i].begin; s < packing.blocks[i].end; ++s) {
      section_blocks_[static_cast<size_t>(next[static_cast<size_t>(s)]++)] = static_cast<int32_t>(i);
    }
  }
  is_dirty_.assign(sections, 0);
}

void CapacitySearch::reset(int64_t capacity) {
  const auto sections = static_cast<size_t>(packing_.section_count);
  capacity_ = capacity;
  height_.assign(sections, 0);
  to_come_ = packing_.section_bytes;
  crossing_.assign(sections, 0);
  for (const Block& block : packing_.blocks) {
    for (int32_t s = block.begin; s + 1 < block.end; ++s) ++crossing_[static_cast<size_t>(s)];
  }
  low_.assign(packing_.blocks.size(), 0);
  offset_.assign(packing_.blocks.size(), -1);
  trail_.clear();
  parts_.clear();
  frames_.clear();
  choices_.clear();
  agenda_ = -1;
}

CapacitySearch::Outcome CapacitySearch::run(int64_t capacity, const std::vector<int32_t>& rank,
                                            int64_t work_limit) {
  reset(capacity);
  rank_ = &rank;
  const int64_t stop_at = work_ + work_limit;
  for (int64_t bytes : to_come_) {
    if (bytes > capacity) return Outcome::kImpossible;
  }
  split({0, packing_.section_count, -1, -1}, -1, -1);
  while (agenda_ >= 0) {
    if (work_ > stop_at) return Outcome::kOutOfWork;
    if (!descend()) return Outcome::kImpossible;
  }
  return Outcome::kFound;
}

/// Opens the next part and takes its first case; on a refutation goes back until a case is left. False: none
/// is.
bool CapacitySearch::descend() {
  bool alive = open_next_part();
  int32_t failed =
      alive ? static_cast<int32_t>(frames_.size()) - 1 : parts_[static_cast<size_t>(agenda_)].parent_frame;
  while (failed >= 0) {
    frames_.resize(static_cast<size_t>(failed) + 1);
    Frame& frame = frames_.back();
    undo_to(frame.trail_size);
    parts_.resize(frame.part_count);
    choices_.resize(frame.choice_end);
    agenda_ = frame.rest;
    if (take_next_case()) return true;
    failed =
        frame.choice_next > frame.choice_end ? parts_[static_cast<size_t>(frame.part)].parent_frame : failed;
  }
  return false;
}

/// Makes a frame for the part at the head of the agenda. False if the part is refuted without branching.
bool CapacitySearch::open_next_part() {
  const int32_t index = agenda_;
  const Part part = parts_[static_cast<size_t>(index)];
  Choice choice;
  choice.cases = std::numeric_limits<int32_t>::max();
  if (!choose(part, choice)) return false;
  Frame frame;
  frame.part = index;
  frame.rest = part.next;
  frame.part_count = parts_.size();
  frame.trail_size = trail_.size();
  frame.section = choice.section;
  frame.raise_to = choice.raise_to;
  frame.choice_begin = choices_.size();
  frame.choice_next = frame.choice_begin;
  std::sort(choice.blocks.begin(), choice.blocks.end(), [&](int32_t a, int32_t b) {
    return (*rank_)[static_cast<size_t>(a)] < (*rank_)[static_cast<size_t>(b)];
  });
  choices_.insert(choices_.end(), choice.blocks.begin(), choice.blocks.end());
  frame.choice_end = choices_.size();
  frames_.push_back(frame);
  return true;
}

/// Takes one case of the last frame; the rise of the floor comes last. False if it is refuted at once, or
/// none is left (then choice_next is past choice_end).
bool CapacitySearch::take_next_case() {
  Frame& frame = frames_.back();
  const size_t taken = frame.choice_next++;
  if (taken < frame.choice_end) {
    place(choices_[taken]);
  } else if (taken == frame.choice_end && frame.raise_to >= 0) {
    set_height(frame.section, frame.raise_to);
    touched_.push_back(frame.section);
  } else {
    frame.choice_next = frame.choice_end + 1;
    return false;
  }
  if (!propagate()) return false;
  const Part part = parts_[static_cast<size_t>(frame.part)];
  split(part, static_cast<int32_t>(frames_.size()) - 1, frame.rest);
  return true;
}

void CapacitySearch::undo_to(size_t trail_size) {
  while (trail_.size() > trail_size) {
    const TrailEntry entry = trail_.back();
    trail_.pop_back();
    const auto index = static_cast<size_t>(entry.index);
    if (entry.change == Change::kHeight) {
      height_[index] = entry.old_value;
    } else if (entry.change == Change::kLow) {
      low_[index] = entry.old_value;
    } else {
      const Block& block = packing_.blocks[index];
      offset_[index] = -1;
      for (int32_t s = block.begin; s < block.end; ++s) to_come_[static_cast<size_t>(s)] += block.size;
      for (int32_t s = block.begin; s + 1 < block.end; ++s) ++crossing_[static_cast<size_t>(s)];
    }
  }
}

void CapacitySearch::set_height(int32_t section, int64_t height) {
  int64_t& current = height_[static_cast<size_t>(section)];
  trail_.push_back({current, section, Change::kHeight});
  current = height;
}

void CapacitySearch::place(int32_t index) {
  const Block& block = packing_.blocks[static_cast<size_t>(index)];
  const int64_t offset = low_[static_cast<size_t>(index)];
  trail_.push_back({0, index, Change::kPlaced});
  offset_[static_cast<size_t>(index)] = offset;
  for (int32_t s = block.begin; s < block.end; ++s) {
    to_come_[static_cast<size_t>(s)] -= block.size;
    set_height(s, offset + block.size);
    touched_.push_back(s);
  }
  for (int32_t s = block.begin; s + 1 < block.end; ++s) --crossing_[static_cast<size_t>(s)];
}

/// Heights lift the low offsets of open blocks, and low offsets lift heights, until nothing moves.
bool CapacitySearch::propagate() {
  bool alive = true;
  while (alive && !touched_.empty()) {
    dirty_.clear();
    auto mark = [&](int32_t s) {
      if (is_dirty_[static_cast<size_t>(s)] == 0) is_dirty_[static_cast<size_t>(s)] = 1, dirty_.push_back(s);
    };
    for (int32_t s : touched_) {
      mark(s);
      const int64_t height = height_[static_cast<size_t>(s)];
      const int32_t end = section_start_[static_cast<size_t>(s) + 1];
      work_ += end - section_start_[static_cast<size_t>(s)];
      for (int32_t k = section_start_[static_cast<size_t>(s)]; k < end; ++k) {
        const int32_t i = section_blocks_[static_cast<size_t>(k)];
        int64_t& low = low_[static_cast<size_t>(i)];
        if (low >= height || offset_[static_cast<size_t>(i)] >= 0) continue;
        const Block& block = packing_.blocks[static_cast<size_t>(i)];
        trail_.push_back({low, i, Change::kLow});
        low = align_up(height, block.alignment);
        for (int32_t t = block.begin; t < block.end; ++t) mark(t);
      }
    }
    touched_.clear();
    for (int32_t s : dirty_) {
      is_dirty_[static_cast<size_t>(s)] = 0;
      alive = alive && recheck(s);
    }
  }
  touched_.clear();
  return alive;
}

/// The open blocks of a section, each not before its low offset, must end by the capacity: stacking them in
/// the order of their low offsets is the best there is (one machine with release dates).
bool CapacitySearch::recheck(int32_t section) {
  const auto s = static_cast<size_t>(section);
  if (to_come_[s] == 0) return true;
  releases_.clear();
  work_ += 2 * (section_start_[s + 1] - section_start_[s]);
  for (int32_t k = section_start_[s]; k < section_start_[s + 1]; ++k) {
    const auto i = static_cast<size_t>(section_blocks_[static_cast<size_t>(k)]);
    if (offset_[i] < 0) releases_.emplace_back(low_[i], packing_.blocks[i].size);
  }
  std::sort(releases_.begin(), releases_.end());
  int64_t top = 0;
  for (const auto& [low, size] : releases_) top = std::max(top, low) + size;
  if (top > capacity_) return false;
  if (releases_.front().first > height_[s]) {
    set_height(section, releases_.front().first);
    touched_.push_back(section);
  }
  return true;
}

/// Puts the pieces of a part that have open blocks on top of the agenda, the one with the least slack first.
void CapacitySearch::split(const Part& part, int32_t parent_frame, int32_t rest) {
  struct Piece {
    int64_t slack;
    int32_t begin;
    int32_t end;
  };
  std::vector<Piece> pieces;
  int32_t begin = part.begin;
  int64_t slack = kInfinity;
  work_ += part.end - part.begin;
  for (int32_t t = part.begin; t < part.end; ++t) {
    const auto s = static_cast<size_t>(t);
    if (to_come_[s] > 0) slack = std::min(slack, capacity_ - height_[s] - to_come_[s]);
    if (t + 1 < part.end && crossing_[s] > 0) continue;
    if (slack != kInfinity) pieces.push_back({slack, begin, t + 1});
    begin = t + 1;
    slack = kInfinity;
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.slack > b.slack; });
  for (const Piece& piece : pieces) {
    parts_.push_back({piece.begin, piece.end, parent_frame, rest});
    rest = static_cast<int32_t>(parts_.size()) - 1;
  }
  agenda_ = rest;
}

bool CapacitySearch::choose(const Part& part, Choice& best) {
  int32_t s = part.begin;
  while (s < part.end) {
    int32_t end = s + 1;
    while (end < part.end && height_[static_cast<size_t>(end)] == height_[static_cast<size_t>(s)]) ++end;
    const int64_t floor = height_[static_cast<size_t>(s)];
    const bool left_higher = s == part.begin || height_[static_cast<size_t>(s) - 1] > floor;
    const bool right_higher = end == part.end || height_[static_cast<size_t>(end)] > floor;
    if (left_higher && right_higher && !examine_valley(s, end, best)) return false;
    if (best.cases == 1) return true;
    s = end;
  }
  return true;
}

bool CapacitySearch::examine_valley(int32_t begin, int32_t end, Choice& best) {
  in_valley_.clear();
  const int64_t floor = height_[static_cast<size_t>(begin)];
  for (int32_t s = begin; s < end; ++s) {
    work_ += section_start_[static_cast<size_t>(s) + 1] - section_start_[static_cast<size_t>(s)];
    for (int32_t k = section_start_[static_cast<size_t>(s)]; k < section_start_[static_cast<size_t>(s) + 1];
         ++k) {
      const int32_t i = section_blocks_[static_cast<size_t>(k)];
      const bool open = offset_[static_cast<size_t>(i)] < 0;
      if (open && low_[static_cast<size_t>(i)] == floor &&
          packing_.blocks[static_cast<size_t>(i)].begin == s) {
        in_valley_.push_back(i);
      }
    }
  }
  for (int32_t s = begin; s < end; ++s) {
    if (to_come_[static_cast<size_t>(s)] > 0 && !examine_section(s, best)) return false;
    if (best.cases == 1) return true;
  }
  return true;
}

/// Counts the cases of one section of the valley whose blocks are in in_valley_. False if there are none.
bool CapacitySearch::examine_section(int32_t section, Choice& best) {
  const auto s = static_cast<size_t>(section);
  const int64_t floor = height_[s];
  scratch_.blocks.clear();
  int64_t smallest_beside = kInfinity;
  work_ += static_cast<int64_t>(in_valley_.size());
  for (int32_t i : in_valley_) {
    const Block& block = packing_.blocks[static_cast<size_t>(i)];
    if (block.begin > section || block.end <= section) {
      smallest_beside = std::min(smallest_beside, block.size);
      continue;
    }
    const bool seen = std::any_of(scratch_.blocks.begin(), scratch_.blocks.end(), [&](int32_t other) {
      return same_rectangle(block, packing_.blocks[static_cast<size_t>(other)]);
    });
    if (!seen) scratch_.blocks.push_back(i);
  }
  // A block that does not rest on the floor rests on another one of this valley, or reaches beyond its walls.
  int64_t raise_to = kInfinity;
  if (!scratch_.blocks.empty() && smallest_beside != kInfinity) raise_to = floor + smallest_beside;
  work_ += section_start_[s + 1] - section_start_[s];
  for (int32_t k = section_start_[s]; k < section_start_[s + 1]; ++k) {
    const auto i = static_cast<size_t>(section_blocks_[static_cast<size_t>(k)]);
    if (offset_[i] < 0 && low_[i] > floor) raise_to = std::min(raise_to, low_[i]);
  }
  const bool can_raise = raise_to != kInfinity && raise_to + to_come_[s] <= capacity_;
  const int32_t cases = static_cast<int32_t>(scratch_.blocks.size()) + (can_raise ? 1 : 0);
  const int64_t slack = capacity_ - floor - to_come_[s];
  if (cases < best.cases || (cases == best.cases && slack < best.slack)) {
    best.section = section;
    best.cases = cases;
    best.slack = slack;
    best.raise_to = can_raise ? raise_to : -1;
    best.blocks.swap(scratch_.blocks);
  }
  return cases > 0;
}

}  // namespace gcompile::memory
