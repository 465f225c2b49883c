#pragma once
// Where every value of the scheduled graph lives: which buffer, at which element offset, with which strides
// (DESIGN law 4). Views are aliases; Concat operands are placed inside the result;
// outputs are written in place.

#include <map>
#include <set>
#include <vector>

#include "codegen/loops/loop_nest.h"
#include "codegen/memory/storage.h"
#include "codegen/order/node_forms.h"
#include "ir/graph/operator.h"

namespace gcompile {

/// Decides homes for the values of one graph (not its subgraphs), given homes of its inputs. Where an output
/// grows in the memory of an input, only what the input does not have is written.
/// `forms`: one per node. Fills `storage`; nodes in `elided` need no kernel.
class StorageAssigner {
 public:
  struct Result {
    std::map<ir::ValueId, Storage> storage;
    std::set<ir::NodeId> elided;                                 // pure aliases
    std::map<ir::NodeId, std::set<std::size_t>> elided_regions;  // what is in place without being copied
  };

  /// `inputs`: storage of the graph's inputs. `outputs`: where outputs must end up; an invalid entry lets the
  /// output live anywhere. `time`: step of every node; `end`: time after the last node.
  /// `place_parts`: write operands of Concat where the result lies (no copy, but the result lives from the
  /// first part). `copy_views`: but not views of what cannot be written there, for which placing is a copy of
  /// its own (fewer kernels, but what is viewed lives until Concat).
  StorageAssigner(const ir::Graph& graph, const NodeForms& forms, std::vector<StorageBuffer>& buffers,
                  bool place_parts, bool copy_views)
      : graph_(graph), forms_(forms), buffers_(buffers), place_parts_(place_parts), copy_views_(copy_views) {}
  Result run(const std::vector<ir::NodeId>& order, const std::vector<Storage>& inputs,
             const std::vector<Storage>& outputs, const std::map<ir::NodeId, std::int64_t>& time);

 private:
  const ir::LoopForm* loops(ir::NodeId id) const;
  bool is_alias_candidate(ir::NodeId id) const;
  ir::ValueId viewed(ir::NodeId id) const;
  bool placeable(ir::ValueId id, const ir::Shape& strides) const;
  void place_operands(ir::NodeId id);
  void place_overwritten(ir::NodeId id);
  bool lies_in_state(const Storage& home) const;
  std::optional<Storage> home_behind_view(ir::NodeId id, const Storage& home) const;
  std::optional<Storage> home_of_view(ir::ValueId id) const;
  bool lies_at(ir::ValueId id, const Storage& home) const;
  void place_view_operand(ir::NodeId id, const Storage& home);
  bool stays_a_view(ir::ValueId id, Storage home) const;
  void place_parts(ir::NodeId id, const Storage& home);
  void keep_in_place(ir::NodeId id);
  bool may_assign_in_place(ir::NodeId id) const;
  std::optional<Storage> alias(const ir::LoopForm& form, const Storage& operand,
                               const ir::Value& result) const;
  Storage fresh(ir::ValueId id);
  std::optional<Storage> in_place(ir::NodeId id, std::int64_t now) const;
  void settle(ir::ValueId id, Storage home);

  const ir::Graph& graph_;
  const NodeForms& forms_;
  std::vector<StorageBuffer>& buffers_;
  bool place_parts_, copy_views_;
  Result result_;
  std::set<ir::ValueId> fixed_;                     // homes decided by a consumer
  std::map<ir::ValueId, std::int64_t> last_use_;    // through aliases
  std::map<int, std::int64_t> last_use_of_buffer_;  // of the values at home there
};

}  // namespace gcompile
