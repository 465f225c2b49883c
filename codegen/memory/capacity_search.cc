#include "codegen/memory/capacity_search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/interrupt.h"

namespace gcompile::memory {
namespace {

constexpr int64_t kPollInterval = 1'000'000;
constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

/// For each block the one before it with the same rectangle, or -1.
std::vector<int32_t> find_twins(const std::vector<Block>& blocks) {
  std::map<std::tuple<int32_t, int32_t, int64_t, int64_t>, int32_t> last_seen;
  std::vector<int32_t> twins;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    auto [at, is_new] = last_seen.try_emplace({block.begin, block.end, block.size, block.alignment}, -1);
    twins.push_back(at->second);
    at->second = static_cast<int32_t>(i);
  }
  return twins;
}

}  // namespace

CapacitySearch::CapacitySearch(const PlacementProblem& problem) : problem_(problem) {
  const auto sections = static_cast<size_t>(problem.section_count);
  section_start_.assign(sections + 1, 0);
  for (const Block& block : problem.blocks) {
    for (int32_t s = block.begin; s < block.end; ++s) ++section_start_[static_cast<size_t>(s) + 1];
    largest_alignment_ = std::max(largest_alignment_, block.alignment);
  }
  std::partial_sum(section_start_.begin(), section_start_.end(), section_start_.begin());
  section_blocks_.resize(static_cast<size_t>(section_start_.back()));
  std::vector<int32_t> next(section_start_.begin(), section_start_.end() - 1);
  for (size_t i = 0; i < problem.blocks.size(); ++i) {
    member_start_.push_back(static_cast<int64_t>(member_.size()));
    for (int32_t s = problem.blocks[i].begin; s < problem.blocks[i].end; ++s) {
      member_.push_back(next[static_cast<size_t>(s)]);
      section_blocks_[static_cast<size_t>(next[static_cast<size_t>(s)]++)] = static_cast<int32_t>(i);
    }
  }
  starting_.resize(sections);
  for (size_t i = 0; i < problem.blocks.size(); ++i) {
    starting_[static_cast<size_t>(problem.blocks[i].begin)].push_back(static_cast<int32_t>(i));
  }
  twin_before_ = find_twins(problem.blocks);
  is_dirty_.assign(sections, 0);
}

void CapacitySearch::reset(int64_t capacity) {
  const auto sections = static_cast<size_t>(problem_.section_count);
  height_.assign(sections, 0);
  next_low_.assign(sections, kInfinity);
  ceiling_.assign(sections, capacity);
  to_come_ = problem_.section_bytes;
  crossing_.assign(sections, 0);
  for (const Block& block : problem_.blocks) {
    for (int32_t s = block.begin; s + 1 < block.end; ++s) ++crossing_[static_cast<size_t>(s)];
  }
  open_count_.clear();
  for (size_t s = 0; s < sections; ++s) open_count_.push_back(section_start_[s + 1] - section_start_[s]);
  low_.assign(problem_.blocks.size(), 0);
  offset_.assign(problem_.blocks.size(), -1);
  trail_.clear();
  parts_.clear();
  frames_.clear();
  choices_.clear();
  agenda_ = -1;
}

CapacitySearch::Outcome CapacitySearch::run(int64_t capacity, Focus focus, const std::vector<int32_t>& rank,
                                            int64_t work_limit) {
  reset(capacity);
  focus_ = focus;
  rank_ = &rank;
  const int64_t stop_at = work_ + work_limit;
  for (int64_t bytes : to_come_) {
    if (bytes > capacity) return Outcome::kImpossible;
  }
  split({0, problem_.section_count, -1, -1}, -1, -1);
  int64_t poll_at = work_;
  while (agenda_ >= 0) {
    if (work_ > stop_at) return Outcome::kOutOfWork;
    if (work_ >= poll_at) {
      poll_interrupt();
      poll_at = work_ + kPollInterval;
    }
    if (!descend()) return Outcome::kImpossible;
  }
  return Outcome::kFound;
}

/// Opens the next part and takes its first case; on a refutation goes back until a case is left.
/// False: none is.
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
    place_on_floor(choices_[taken]);
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
    } else if (entry.change == Change::kCeiling) {
      ceiling_[index] = entry.old_value;
    } else if (entry.change == Change::kNextLow) {
      next_low_[index] = entry.old_value;
    } else if (entry.change == Change::kLow) {
      low_[index] = entry.old_value;
    } else {
      const Block& block = problem_.blocks[index];
      offset_[index] = -1;
      for (int32_t s = block.begin; s < block.end; ++s) {
        to_come_[static_cast<size_t>(s)] += block.size;
        ++open_count_[static_cast<size_t>(s)];
      }
      for (int32_t s = block.begin; s + 1 < block.end; ++s) ++crossing_[static_cast<size_t>(s)];
    }
  }
}

void CapacitySearch::set_height(int32_t section, int64_t height) {
  int64_t& current = height_[static_cast<size_t>(section)];
  trail_.push_back({current, section, Change::kHeight});
  current = height;
}

/// Takes the block out of its sections' open ones. undo_to() only counts it in again: it finds it right
/// behind them.
void CapacitySearch::close_block(int32_t index, int64_t offset) {
  const Block& block = problem_.blocks[static_cast<size_t>(index)];
  trail_.push_back({0, index, Change::kPlaced});
  offset_[static_cast<size_t>(index)] = offset;
  const auto member = static_cast<size_t>(member_start_[static_cast<size_t>(index)]);
  for (int32_t t = block.begin; t < block.end; ++t) {
    const auto s = static_cast<size_t>(t);
    to_come_[s] -= block.size;
    int32_t& place = member_[member + static_cast<size_t>(t - block.begin)];
    const int32_t last_place = section_start_[s] + --open_count_[s];
    const int32_t last = section_blocks_[static_cast<size_t>(last_place)];
    const int64_t last_member =
        member_start_[static_cast<size_t>(last)] + t - problem_.blocks[static_cast<size_t>(last)].begin;
    std::swap(section_blocks_[static_cast<size_t>(place)], section_blocks_[static_cast<size_t>(last_place)]);
    std::swap(place, member_[static_cast<size_t>(last_member)]);
  }
  for (int32_t s = block.begin; s + 1 < block.end; ++s) --crossing_[static_cast<size_t>(s)];
}

void CapacitySearch::place_on_floor(int32_t index) {
  const Block& block = problem_.blocks[static_cast<size_t>(index)];
  const int64_t offset = low_[static_cast<size_t>(index)];
  close_block(index, offset);
  for (int32_t s = block.begin; s < block.end; ++s) {
    set_height(s, offset + block.size);
    touched_.push_back(s);
  }
}

/// Sizes that are no multiple of every alignment stay, as the blocks that slide down would lose theirs.
bool CapacitySearch::place_spanning_on_ceiling(int32_t begin, int32_t end) {
  bool placed = false;
  const auto first = static_cast<size_t>(section_start_[static_cast<size_t>(begin)]);
  for (size_t k = first; k < first + static_cast<size_t>(open_count_[static_cast<size_t>(begin)]);) {
    const int32_t index = section_blocks_[k];
    const Block& block = problem_.blocks[static_cast<size_t>(index)];
    const int64_t offset = ceiling_[static_cast<size_t>(begin)] - block.size;
    if (block.begin != begin || block.end != end || block.size % largest_alignment_ != 0 ||
        offset % block.alignment != 0) {
      ++k;
      continue;
    }
    close_block(index, offset);
    for (int32_t s = begin; s < end; ++s) {
      trail_.push_back({ceiling_[static_cast<size_t>(s)], s, Change::kCeiling});
      ceiling_[static_cast<size_t>(s)] = offset;
    }
    work_ += end - begin;
    placed = true;
  }
  return placed;
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
      work_ += open_count_[static_cast<size_t>(s)];
      for (int32_t i : open_blocks(s)) {
        int64_t& low = low_[static_cast<size_t>(i)];
        if (low >= height) continue;
        const Block& block = problem_.blocks[static_cast<size_t>(i)];
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

/// Lifts the section's height to the lowest that any of its open blocks can be, and refutes it if they cannot
/// end by the ceiling.
bool CapacitySearch::recheck(int32_t section) {
  const auto s = static_cast<size_t>(section);
  if (to_come_[s] == 0) return true;
  work_ += open_count_[s];
  int64_t lowest = kInfinity;
  int64_t next_low = kInfinity;
  int64_t highest = 0;
  for (int32_t i : open_blocks(section)) {
    const int64_t low = low_[static_cast<size_t>(i)];
    if (low < lowest) {
      next_low = lowest;
      lowest = low;
    } else if (low > lowest && low < next_low) {
      next_low = low;
    }
    highest = std::max(highest, low);
  }
  if (lowest + to_come_[s] > ceiling_[s]) return false;
  if (highest + to_come_[s] > ceiling_[s] && !fits_in_order(section)) return false;
  if (lowest > height_[s]) {
    set_height(section, lowest);
    touched_.push_back(section);
  }
  if (next_low != next_low_[s]) {
    trail_.push_back({next_low_[s], section, Change::kNextLow});
    next_low_[s] = next_low;
  }
  return true;
}

/// Stacking the open blocks, each not before its low offset, in the order of these offsets is the best there
/// is (one machine with release dates).
bool CapacitySearch::fits_in_order(int32_t section) {
  releases_.clear();
  for (int32_t i : open_blocks(section)) {
    releases_.emplace_back(low_[static_cast<size_t>(i)], problem_.blocks[static_cast<size_t>(i)].size);
  }
  work_ += 4 * static_cast<int64_t>(releases_.size());
  std::sort(releases_.begin(), releases_.end());
  int64_t top = 0;
  for (const auto& [low, size] : releases_) top = std::max(top, low) + size;
  return top <= ceiling_[static_cast<size_t>(section)];
}

/// Puts the pieces of a part that have open blocks on top of the agenda, the one with the least slack first.
void CapacitySearch::split(const Part& part, int32_t parent_frame, int32_t rest) {
  pieces_.clear();
  find_pieces(part.begin, part.end);
  for (size_t i = 0; i < pieces_.size();) {
    const Piece piece = pieces_[i];
    if (!place_spanning_on_ceiling(piece.begin, piece.end)) {
      ++i;
      continue;
    }
    pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(i));
    find_pieces(piece.begin, piece.end);
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return a.slack != b.slack ? a.slack > b.slack : a.begin > b.begin;
  });
  for (const Piece& piece : pieces_) {
    parts_.push_back({piece.begin, piece.end, parent_frame, rest});
    rest = static_cast<int32_t>(parts_.size()) - 1;
  }
  agenda_ = rest;
}

/// Appends to pieces_ the runs of sections that no open block crosses the borders of.
void CapacitySearch::find_pieces(int32_t begin, int32_t end) {
  int64_t slack = kInfinity;
  work_ += end - begin;
  int32_t piece_begin = begin;
  for (int32_t t = begin; t < end; ++t) {
    const auto s = static_cast<size_t>(t);
    if (to_come_[s] > 0) slack = std::min(slack, ceiling_[s] - height_[s] - to_come_[s]);
    if (t + 1 < end && crossing_[s] > 0) continue;
    if (slack != kInfinity) pieces_.push_back({slack, piece_begin, t + 1});
    piece_begin = t + 1;
    slack = kInfinity;
  }
}

/// Picks the section of the part to decide next. False if one has no case at all.
bool CapacitySearch::choose(const Part& part, Choice& best) {
  int32_t s = part.begin;
  int32_t lowest_begin = -1;
  int32_t lowest_end = -1;
  while (s < part.end) {
    int32_t end = s + 1;
    while (end < part.end && height_[static_cast<size_t>(end)] == height_[static_cast<size_t>(s)]) ++end;
    const int64_t floor = height_[static_cast<size_t>(s)];
    const bool left_higher = s == part.begin || height_[static_cast<size_t>(s) - 1] > floor;
    const bool right_higher = end == part.end || height_[static_cast<size_t>(end)] > floor;
    if (left_higher && right_higher) {
      if (lowest_begin < 0 || floor < height_[static_cast<size_t>(lowest_begin)])
        lowest_begin = s, lowest_end = end;
      if (focus_ == Focus::kFewestCases && !examine_valley(s, end, best)) return false;
    }
    s = end;
  }
  if (focus_ == Focus::kLowestValley && !examine_valley(lowest_begin, lowest_end, best)) return false;
  for (int32_t i : open_blocks(best.section)) {
    if (low_[static_cast<size_t>(i)] == height_[static_cast<size_t>(best.section)] && !has_open_twin(i)) {
      best.blocks.push_back(i);
    }
  }
  return true;
}

/// Counts, for each section of a valley, the open blocks that can rest on its floor, and the smallest of
/// those that rest beside the section: what is above a section without resting on the floor rests on one of
/// these, or reaches beyond the valley's walls. False if a section has no case.
bool CapacitySearch::examine_valley(int32_t begin, int32_t end, Choice& best) {
  const int64_t floor = height_[static_cast<size_t>(begin)];
  const auto width = static_cast<size_t>(end - begin);
  cover_.assign(width + 1, 0);
  smallest_before_.assign(width + 1, kInfinity);
  smallest_after_.assign(width + 1, kInfinity);
  int32_t favourite = -1;
  work_ += 2 * (end - begin);
  for (int32_t s = begin; s < end; ++s) {
    work_ += static_cast<int64_t>(starting_[static_cast<size_t>(s)].size());
    for (int32_t i : starting_[static_cast<size_t>(s)]) {
      const auto block_index = static_cast<size_t>(i);
      if (offset_[block_index] >= 0 || low_[block_index] != floor || has_open_twin(i)) continue;
      const Block& block = problem_.blocks[block_index];
      const auto from = static_cast<size_t>(s - begin);
      const auto to = static_cast<size_t>(block.end - begin);
      ++cover_[from];
      --cover_[to];
      smallest_before_[to] = std::min(smallest_before_[to], block.size);
      smallest_after_[from] = std::min(smallest_after_[from], block.size);
      if (favourite < 0 || (*rank_)[block_index] < (*rank_)[static_cast<size_t>(favourite)]) favourite = i;
    }
  }
  for (size_t k = width; k-- > 1;)
    smallest_after_[k - 1] = std::min(smallest_after_[k - 1], smallest_after_[k]);
  int32_t cover = 0;
  int64_t before = kInfinity;
  for (int32_t s = begin; s < end; ++s) {
    const auto k = static_cast<size_t>(s - begin);
    cover += cover_[k];
    before = std::min(before, smallest_before_[k]);
    if (to_come_[static_cast<size_t>(s)] == 0) continue;
    const int64_t beside = std::min(before, smallest_after_[k + 1]);
    if (!weigh_section(s, cover, beside, favourite, best)) return false;
  }
  return true;
}

bool CapacitySearch::weigh_section(int32_t section, int32_t cover, int64_t beside, int32_t favourite,
                                   Choice& best) {
  const auto s = static_cast<size_t>(section);
  int64_t raise_to = next_low_[s];
  if (cover > 0 && beside != kInfinity) raise_to = std::min(raise_to, height_[s] + beside);
  const bool can_raise = raise_to != kInfinity && raise_to + to_come_[s] <= ceiling_[s];
  const int32_t cases = cover + (can_raise ? 1 : 0);
  const int64_t slack = ceiling_[s] - height_[s] - to_come_[s];
  std::array<int64_t, 2> cost{cases, slack};
  if (focus_ == Focus::kLowestValley && cases > 1) {
    const bool covered = favourite >= 0 && problem_.blocks[static_cast<size_t>(favourite)].begin <= section &&
                         section < problem_.blocks[static_cast<size_t>(favourite)].end;
    cost[0] = covered ? 2 : 3;
  }
  if (cost < best.cost) {
    best.section = section;
    best.cost = cost;
    best.raise_to = can_raise ? raise_to : -1;
  }
  return cases > 0;
}

}  // namespace gcompile::memory
