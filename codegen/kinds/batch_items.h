#pragma once
// The entries of a product's batch as work of one parallel loop on the CPU.

#include "codegen/calls/call_writer.h"
#include "codegen/calls/head_coordinates.h"
#include "codegen/kinds/matrix_product.h"

namespace gcompile {

/// Entries of a batch, and the work items of each, as one parallel loop (gcrt/parallel.h): a product of one
/// entry prepares its scratch in front of its loop, those of a batch in parts of the loop, each in its own.
class BatchItems {
 public:
  /// `scratch`: elements that an entry prepares. `parts`: that there is memory for, as batch_parts says.
  BatchItems(const Product& product, std::int64_t parts, SizeParameters& sizes);
  bool is_one() const { return product_.axes.batch.empty(); }
  /// Elements of scratch, of which a part has so many.
  ir::Dim elements(ir::Dim of_part) const { return parts_ * of_part; }
  /// "packed + 512 * part".
  std::string of_part(const std::string& scratch, ir::Dim elements) const;
  /// The left matrix of an entry, and the right one, of these strides.
  std::string a() const;
  std::string b(const ir::Shape& strides) const;
  /// Opens the loop over `items` work items of each entry, with b<axis> of those axes that `named` has too.
  /// No items: entries as they are.
  void open(KernelCall& out, CodeText& code, const std::string& items, const std::vector<int>& named,
            const ir::Shape& b_strides, bool has_scratch) const;
  void close(CodeText& code) const { code.close("});"); }

 private:
  HeadOffset offset(const ir::Shape& along) const;
  const Product& product_;
  std::int64_t parts_;
  SizeParameters& sizes_;
  ir::Shape entries_;  // extents of the result's axes; 1: no axis of the batch
};
/// Parts of a batch, each with `bytes` of scratch of its own: as many as are worth a thread, but, beyond a
/// few, in no more memory than the result has. `picoseconds`: of all entries.
std::int64_t batch_parts(const ir::Problem& problem, std::int64_t bytes, std::int64_t picoseconds,
                         const Machine& machine);

}  // namespace gcompile
