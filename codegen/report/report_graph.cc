#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "codegen/report/quantities.h"
#include "codegen/report/report_parts.h"
#include "nlohmann/json.hpp"

namespace gcompile {

using Json = nlohmann::ordered_json;

namespace {

/// Beyond so many lanes a picture tells nothing; the links beside it still do.
constexpr std::size_t kMostLanes = 16;
constexpr int kLaneWidth = 12;
constexpr std::size_t kNone = ~std::size_t{0};

int lane_x(std::size_t lane) { return static_cast<int>(lane) * kLaneWidth + kLaneWidth / 2; }

/// A result goes down its lane from the call that makes it to the last one that reads it.
class Lanes {
 public:
  explicit Lanes(const std::vector<Layer>& layers) : last_reader_(layers.size()) {
    for (std::size_t i = 0; i < layers.size(); ++i) last_reader_[i] = i;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      for (const std::size_t from : layers[i].reads) last_reader_[from] = i;
    }
  }

  /// The lines in the row of a call; its dot is at dot(). Rows in order.
  std::string row(std::size_t layer, const std::vector<std::size_t>& reads) {
    std::string svg;
    std::vector<std::size_t> arriving;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const std::size_t from = lanes_[lane];
      if (from == kNone) continue;
      if (std::find(reads.begin(), reads.end(), from) != reads.end()) arriving.push_back(lane);
      if (last_reader_[from] > layer) {
        svg += fmt::format("<path class=\"l{}\" d=\"M{} 0V100\"/>", lane % 5, lane_x(lane));
      } else {
        lanes_[lane] = kNone;
      }
    }
    const auto free = std::find(lanes_.begin(), lanes_.end(), kNone);
    const auto mine = static_cast<std::size_t>(free - lanes_.begin());
    dot_ = mine;
    for (const std::size_t lane : arriving) {
      svg += fmt::format("<path class=\"l{}\" d=\"M{} 0L{} 50\"/>", lane % 5, lane_x(lane), lane_x(mine));
    }
    if (last_reader_[layer] > layer && mine < kMostLanes) {
      if (free == lanes_.end()) lanes_.push_back(kNone);
      lanes_[mine] = layer;
      svg += fmt::format("<path class=\"l{}\" d=\"M{} 50V100\"/>", mine % 5, lane_x(mine));
    }
    most_ = std::max(most_, std::min(mine + 1, kMostLanes));
    return svg;
  }
  int dot() const { return lane_x(std::min(dot_, kMostLanes - 1)); }
  int width() const { return static_cast<int>(most_) * kLaneWidth; }

 private:
  std::vector<std::size_t> last_reader_;
  std::vector<std::size_t> lanes_;  // the call whose result runs there
  std::size_t dot_ = 0, most_ = 1;
};

/// What the nodes of a call would move one by one and it does not: results that stay within it, written once
/// and read once at least.
std::int64_t bytes_saved(const std::vector<const ModelNode*>& nodes) {
  std::int64_t bytes = 0;
  // The last one's results are the call's.
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    if (!nodes[i]->keeps_elements) bytes += 2 * nodes[i]->bytes;
  }
  return bytes;
}

/// "Conv 'conv1'".
std::string title_of(const ModelNode& node) { return fmt::format("{} '{}'", node.what, node.name); }

/// A row for each operator whose nodes no call computes: "Shape: 12".
Json rows_of_gone(const std::vector<const ModelNode*>& gone) {
  std::map<std::string, std::vector<std::string>> by_operator;
  for (const ModelNode* node : gone) by_operator[node->what].push_back(node->name);
  Json out = Json::array();
  for (const auto& [what, names] : by_operator) {
    constexpr std::size_t kShown = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
    if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
    out.push_back({{"what", what}, {"count", names.size()}, {"names", text}});
  }
  return out;
}

/// Where the model has the nodes that a call computes, each once, in the model's order.
std::vector<std::size_t> places_of(const Layer& layer, const std::map<std::string, std::size_t>& position) {
  std::vector<std::size_t> places;
  for (const std::string& node : layer.nodes) {
    const auto at = position.find(node);
    if (at != position.end()) places.push_back(at->second);
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

Json graph_part(const Schedule& schedule) {
  std::map<std::string, std::size_t> position;
  for (std::size_t i = 0; i < schedule.nodes.size(); ++i) position.emplace(schedule.nodes[i].name, i);
  std::vector<bool> is_seen(schedule.nodes.size());
  Lanes lanes(schedule.layers);
  Json rows = Json::array();
  std::int64_t groups = 0, saved_by_all = 0;
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    poll_interrupt();
    const Layer& layer = schedule.layers[i];
    std::vector<const ModelNode*> nodes;
    Json before = Json::array();
    for (const std::size_t place : places_of(layer, position)) {
      is_seen[place] = true;
      nodes.push_back(&schedule.nodes[place]);
      before.push_back(title_of(schedule.nodes[place]));
    }
    const std::int64_t saved = bytes_saved(nodes);
    groups += nodes.size() > 1 ? 1 : 0;
    saved_by_all += saved;
    std::string lines = lanes.row(i, layer.reads);
    rows.push_back({{"step", i},
                    {"lines", std::move(lines)},
                    {"dot", lanes.dot()},
                    {"before", std::move(before)},
                    {"function", layer.function},
                    {"family", layer.family},
                    {"result", layer.result},
                    {"reads", layer.reads},
                    {"saved", saved},
                    {"saved_text", saved > 0 ? human_bytes(saved) : ""}});
  }
  std::vector<const ModelNode*> gone;
  for (std::size_t i = 0; i < is_seen.size(); ++i) {
    if (!is_seen[i] && !schedule.nodes[i].name.empty()) gone.push_back(&schedule.nodes[i]);
  }
  Json out = Json::object();
  out["rows"] = std::move(rows);
  out["has_rows"] = !schedule.layers.empty();
  out["width"] = lanes.width();
  out["nodes"] = counted(static_cast<std::int64_t>(schedule.nodes.size()), "node");
  out["calls"] = counted(static_cast<std::int64_t>(schedule.layers.size()), "call");
  out["groups"] = counted(groups, "of them computes several", "of them compute several");
  out["saved"] = human_bytes(saved_by_all);
  out["gone"] = rows_of_gone(gone);
  out["gone_count"] = counted(static_cast<std::int64_t>(gone.size()), "node");
  out["has_gone"] = !gone.empty();
  const auto unnamed = std::count_if(schedule.nodes.begin(), schedule.nodes.end(),
                                     [](const ModelNode& node) { return node.name.empty(); });
  out["unnamed"] = unnamed == 0 ? ""
                                : " " + counted(unnamed, "node has no name and is not followed.",
                                                "nodes have no names and are not followed.");
  return out;
}

Json rewrites_part(const Schedule& schedule) {
  Json out = Json::object();
  out["passes"] = Json::array();
  for (const ir::PassStatistics& pass : schedule.report.passes) {
    out["passes"].push_back(
        {{"name", pass.name}, {"runs", pass.runs}, {"changes", pass.changes}, {"nodes", pass.nodes}});
  }
  out["has_passes"] = !schedule.report.passes.empty();
  out["laws"] = Json::array();
  for (const auto& [law, count] : schedule.report.rule_counts)
    out["laws"].push_back({{"name", law}, {"count", count}});
  out["has_laws"] = !schedule.report.rule_counts.empty();
  // Remarks of one pass with one text, in the order in which they come first.
  struct Group {
    std::string pass, text, subjects;
    std::int64_t count = 0;
  };
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> place;
  for (const ir::Remark& remark : schedule.report.remarks) {
    const std::string text = to_string(remark);
    const auto [at, is_new] = place.try_emplace({remark.pass, text}, groups.size());
    if (is_new) groups.push_back({remark.pass, text, "", 0});
    Group& group = groups[at->second];
    constexpr std::int64_t kShown = 6;
    if (++group.count <= kShown && !remark.subject.empty())
      group.subjects += (group.subjects.empty() ? "" : ", ") + remark.subject;
    if (group.count == kShown + 1) group.subjects += ", ...";
  }
  out["remarks"] = Json::array();
  for (const Group& group : groups) {
    out["remarks"].push_back(
        {{"pass", group.pass}, {"text", group.text}, {"subjects", group.subjects}, {"count", group.count}});
  }
  out["has_remarks"] = !groups.empty();
  return out;
}

}  // namespace gcompile
