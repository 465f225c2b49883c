// Loop, Scan and SequenceMap: the trips become part of the graph around the node, one after the other, as the taken branch of an
// If does. A trip is the body with its inputs bound to what the trip before has left:
//   Loop(2, , x){body} -> body(1, body(0, x))
// Where only a run knows whether a trip is made, the trip is an If whose other branch hands on what it was given.

#include <fmt/format.h>

#include <algorithm>

#include "frontend/files/tensor_import.h"
#include "frontend/import/trips.h"

namespace gcompile::frontend {
namespace {

std::int64_t number_of(ir::Dim size, std::string_view what) {
  if (!size.is_constant()) {
    operator_error(fmt::format("{} must be known at compile time, it is {}", what, ir::to_string(size)),
                   "trips are unrolled; --dim makes the size a number");
  }
  return size;
}

const std::vector<std::int64_t>* ints_of(const ir::Attributes& attributes, std::string_view name,
                                         std::size_t count) {
  if (!attributes.has(name)) return nullptr;
  const std::vector<std::int64_t>& ints = attributes.ints_of(name);
  if (ints.size() != count)
    malformed(fmt::format("{} has {} elements instead of {}", name, ints.size(), count));
  return &ints;
}

bool is_backward(const std::vector<std::int64_t>* directions, std::size_t i) {
  if (!directions) return false;
  const std::int64_t direction = (*directions)[i];
  if (direction != 0 && direction != 1)
    malformed(fmt::format("a direction must be 0 or 1, not {}", direction));
  return direction == 1;
}

}  // namespace

/// The body and the other attributes.
void Importer::Trips::read_attributes() {
  body_ = graph_of(node_, "body");
  if (!body_) malformed("it has no graph 'body'");
  if (scope_.graph_depth >= importer_.options_.limits.graph_nesting) {
    malformed(fmt::format("graphs are nested deeper than the limit of {}",
                          importer_.options_.limits.graph_nesting));
  }
  attributes_ = attributes_without({"body"});
}

std::optional<std::int64_t> Importer::Trips::most_trips() const {
  if (!has_operand(0)) return std::nullopt;
  const ir::ValueId trips = operand(0);
  if (type(trips).element != ir::ElementType::kInt64 || type(trips).count() != 1) {
    operator_error(fmt::format("the number of trips must be one int64, not {}", ir::to_string(type(trips))));
  }
  const ir::Tensor* known = scope_.graph->constant(trips);
  if (!known) {
    operator_error(
        "the number of trips must be known at compile time",
        "trips are unrolled; --set NAME=VALUE and --dim make it known where an input or a size tells it");
  }
  return std::max<std::int64_t>(known->int_at(0), 0);
}

/// The number of trips that the model declares by the length of a stack of rows, where a run says how many.
std::optional<std::int64_t> Importer::Trips::declared_trips() const {
  const bool is_known = !has_operand(0) || scope_.graph->constant(operand(0));
  const bool has_condition = has_operand(1) && !scope_.graph->constant(operand(1));
  if (!scope_.declared || !has_operand(0) || (is_known && !has_condition)) return std::nullopt;
  if (type(operand(0)).element != ir::ElementType::kInt64 || type(operand(0)).count() != 1)
    return std::nullopt;
  std::optional<std::int64_t> trips;
  for (int k = 0; k < rows_; ++k) {
    if (!is_read(carried_ + k)) continue;
    const auto declared = scope_.declared->find(scope_.prefix + node_.output(carried_ + k));
    if (declared == scope_.declared->end() || declared->second.empty()) continue;
    if (trips && *trips != declared->second[0]) return std::nullopt;
    trips = declared->second[0];
  }
  if (trips && is_known && scope_.graph->constant(operand(0))->int_at(0) != *trips) return std::nullopt;
  return trips && *trips > 0 ? trips : std::nullopt;
}

/// Whether the body gives the condition as it was given.
bool Importer::Trips::is_handed_on(ir::ValueId made, ir::ValueId given) const {
  while (made != given) {
    const ir::NodeId producer = scope_.graph->value(made).producer;
    if (!producer.valid()) return false;
    const ir::Node& node = scope_.graph->node(producer);
    if (!node.op->traits.keeps_elements) return false;
    made = node.operands[0];
  }
  return true;
}

/// A run goes on where it makes so many trips.
void Importer::Trips::demand_trips(std::int64_t trips, ir::ValueId condition) {
  ir::Demanded demanded;
  const ir::Scalar count = ir::Scalar::of_integer(ir::ElementType::kInt64, trips);
  const ir::Scalar yes = ir::Scalar::of_integer(ir::ElementType::kBool, 1);
  const auto ask = [&](ir::ValueId value, const ir::Scalar& example) {
    if (!scope_.graph->constant(value))
      demanded.examples.emplace_back(value, ir::Tensor::filled(type(value), example));
  };
  ask(operand(0), count);
  ask(condition, yes);
  const ir::ValueId wanted = add_constant(count, name_ + "/trips");
  demanded.holds = emit("Equal", {operand(0), wanted}, {}, name_ + "/are_trips");
  if (!scope_.graph->constant(condition))
    demanded.holds = emit("And", {demanded.holds, condition}, {}, name_ + "/go_on");
  demanded.shapes = fmt::format("the Loop {} makes {} trip{}, as its outputs have the shapes for",
                                shown_name(node_), trips, trips == 1 ? "" : "s");
  demanded.origins = {{std::string(op_.name), name_}};
  demanded.searches = true;
  const std::optional<ir::Settled> settled = ir::demand(*scope_.graph, demanded);
  if (!settled) {
    operator_error(
        "the number of trips must be known at compile time",
        "trips are unrolled; --set NAME=VALUE and --dim make it known where an input or a size tells it");
  }
  importer_.tell_settled(*settled, name_, scope_);
}

void Importer::Trips::loop() {
  read_attributes();
  if (node_.input_size() < 2) malformed("it has not the inputs for the number of trips and the condition");
  begin(0, 1, node_.input_size() - 2);
  const std::optional<std::int64_t> declared = declared_trips();
  const std::optional<std::int64_t> most = declared ? declared : most_trips();
  const ir::Scalar yes = ir::Scalar::of_integer(ir::ElementType::kBool, 1);
  Ran ran;
  ran.rows.resize(static_cast<std::size_t>(rows_));
  Binding condition = given(1);
  if (!has_operand(1)) condition = Binding::of(add_constant(yes, name_ + "/condition"));
  require_condition(condition);
  if (declared) demand_trips(*declared, condition.value);
  for (int i = 0; i < carried_; ++i) {
    if (node_.input(2 + i).empty()) malformed(fmt::format("input {} is omitted", 2 + i));
    ran.carried.push_back(given(2 + i));
  }
  const auto inputs_of = [&](std::int64_t number) {
    const ir::Scalar at = ir::Scalar::of_integer(ir::ElementType::kInt64, number);
    const ir::ValueId trip_number = add_constant(at, fmt::format("{}/{}/trip", name_, number));
    Bindings inputs = {Binding::of(trip_number), condition};
    inputs.insert(inputs.end(), ran.carried.begin(), ran.carried.end());
    return inputs;
  };
  for (std::int64_t number = 0; !most || number < *most; ++number) {
    const ir::Tensor* constant = scope_.graph->constant(condition.value);
    if (constant && constant->int_at(0) == 0) break;
    const bool known = constant || declared;
    if (!known && !most)
      operator_error("without a number of trips the condition must be known at compile time");
    for (int k = 0; !known && k < rows_; ++k) {
      if (!is_read(carried_ + k)) continue;
      operator_error(fmt::format(
          "'{}' has as many rows as trips are made, so that the condition must be known at compile time",
          printable(node_.output(carried_ + k))));
    }
    const Bindings outputs = known ? trip(std::to_string(number), inputs_of(number))
                                   : guarded_trip(std::to_string(number), inputs_of(number));
    const ir::ValueId before = condition.value;
    condition = outputs[0];
    require_condition(condition);
    if (declared && !scope_.graph->constant(condition.value) && !is_handed_on(condition.value, before))
      operator_error("the condition of each trip must be known at compile time, or handed on by the body");
    for (int i = 0; i < carried_; ++i) {
      require_type(2 + i, ran.carried[i], outputs[1 + i], true);
      ran.carried[i] = outputs[1 + i];
    }
    for (int k = 0; known && k < rows_; ++k) ran.rows[k].push_back(row_of(outputs, k));
  }
  for (int i = 0; i < node_.output_size(); ++i) {
    if (!is_read(i)) continue;
    const std::string name = scope_.prefix + node_.output(i);
    if (i < carried_) {
      bind_result(i, ran.carried[i]);
    } else if (const Values& rows = ran.rows[i - carried_]; !rows.empty()) {
      bind_result(i, Binding::of(stacked(rows, 0, false, name)));
    } else {
      ir::TensorType none = row_type(inputs_of(0), i - carried_);
      none.shape.insert(none.shape.begin(), 0);
      bind_result(i, Binding::of(zeros(std::move(none), name)));
    }
  }
}

/// `place`: of the trips' numbers, "" or "3/" of entry 3 of a batch.
Importer::Trips::Ran Importer::Trips::run_scan(const std::string& place, Bindings carried,
                                               const std::vector<Scanned>& scanned, std::int64_t length) {
  Ran ran{std::move(carried), std::vector<Values>(static_cast<std::size_t>(rows_))};
  for (std::int64_t t = 0; t < length; ++t) {
    const std::string number = fmt::format("{}{}", place, t);
    Bindings inputs = ran.carried;
    for (const Scanned& each : scanned) {
      const std::string& input = body_->input(static_cast<int>(inputs.size())).name();
      const ir::ValueId entry = slice(each.value, each.axis, each.is_backward ? length - 1 - t : t,
                                      fmt::format("{}/{}/{}", name_, number, input));
      inputs.push_back(Binding::of(entry));
    }
    const Bindings outputs = trip(number, inputs);
    for (int i = 0; i < carried_; ++i) {
      require_type(i, ran.carried[i], outputs[i], false);
      ran.carried[i] = outputs[i];
    }
    for (int k = 0; k < rows_; ++k) ran.rows[k].push_back(row_of(outputs, k));
  }
  return ran;
}

void Importer::Trips::scan() {
  read_attributes();
  if (importer_.opset_of(scope_) < 9) {
    scan_of_batches();
    return;
  }
  const std::int64_t count = attributes_.int_of("num_scan_inputs");
  if (count < 1 || count > node_.input_size()) {
    malformed(fmt::format("num_scan_inputs is {}, of {} inputs", count, node_.input_size()));
  }
  begin(0, 0, node_.input_size() - static_cast<int>(count));
  const auto rows = static_cast<std::size_t>(rows_);
  const auto* axes = ints_of(attributes_, "scan_input_axes", static_cast<std::size_t>(count));
  const auto* directions = ints_of(attributes_, "scan_input_directions", static_cast<std::size_t>(count));
  const auto* row_axes = ints_of(attributes_, "scan_output_axes", rows);
  const auto* row_directions = ints_of(attributes_, "scan_output_directions", rows);
  Bindings carried;
  for (int i = 0; i < carried_; ++i) carried.push_back(Binding::of(operand(i)));
  std::vector<Scanned> scanned;
  std::optional<std::int64_t> length;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Scanned each{operand(carried_ + static_cast<int>(i)), 0, is_backward(directions, i)};
    const ir::Shape& shape = type(each.value).shape;
    each.axis = axis_within(axes ? (*axes)[i] : 0, static_cast<int>(shape.size()));
    const std::int64_t here =
        number_of(shape[static_cast<std::size_t>(each.axis)], "the length of a sequence");
    if (length && here != *length)
      operator_error(fmt::format("its sequences have lengths of {} and {}", *length, here));
    length = here;
    scanned.push_back(each);
  }
  const Ran ran = run_scan("", carried, scanned, *length);
  for (int i = 0; i < node_.output_size(); ++i) {
    if (!is_read(i)) continue;
    const std::string name = scope_.prefix + node_.output(i);
    const auto k = static_cast<std::size_t>(i - carried_);
    const std::int64_t axis = i < carried_ || !row_axes ? 0 : (*row_axes)[k];
    if (i < carried_) {
      bind_result(i, ran.carried[i]);
    } else if (*length > 0) {
      bind_result(i, Binding::of(stacked(ran.rows[k], axis, is_backward(row_directions, k), name)));
    } else {
      Bindings inputs = carried;
      for (const Scanned& each : scanned) {
        ir::TensorType row = type(each.value);
        row.shape.erase(row.shape.begin() + each.axis);
        inputs.push_back(Binding::of(zeros(std::move(row), name + "/none")));
      }
      ir::TensorType none = row_type(inputs, static_cast<int>(k));
      none.shape.insert(none.shape.begin() + axis_within(axis, none.rank() + 1), 0);
      bind_result(i, Binding::of(zeros(std::move(none), name)));
    }
  }
}

/// The results of a Scan before opset 9 that makes no trip.
void Importer::Trips::scan_nothing(std::int64_t entries, std::int64_t length) {
  Bindings inputs;
  for (int i = 1; i < node_.input_size(); ++i) {
    ir::TensorType entry = type(operand(i));
    entry.shape.erase(entry.shape.begin(), entry.shape.begin() + (i > carried_ ? 2 : 1));
    inputs.push_back(Binding::of(zeros(std::move(entry), name_ + "/none")));
  }
  for (int i = 0; i < node_.output_size(); ++i) {
    if (!is_read(i)) continue;
    if (i < carried_) {
      bind_result(i, Binding::of(operand(i + 1)));
    } else {
      ir::TensorType none = row_type(inputs, i - carried_);
      none.shape.insert(none.shape.begin(), {entries, length});
      bind_result(i, Binding::of(zeros(std::move(none), scope_.prefix + node_.output(i))));
    }
  }
}

/// Before opset 9: every operand has a batch along axis 0, sequences their length along axis 1, and entries of the batch
/// may be shorter, behind which outputs are zeros.
void Importer::Trips::scan_of_batches() {
  const std::int64_t count = attributes_.int_of("num_scan_inputs");
  if (count < 1 || count >= node_.input_size()) {
    malformed(fmt::format("num_scan_inputs is {}, of {} inputs", count, node_.input_size() - 1));
  }
  begin(1, 0, node_.input_size() - 1 - static_cast<int>(count));
  const auto* directions = ints_of(attributes_, "directions", static_cast<std::size_t>(count));
  std::optional<std::int64_t> entries, length;
  const auto agree = [&](std::optional<std::int64_t>& all, const ir::TensorType& given, std::size_t axis) {
    if (given.shape.size() <= axis)
      operator_error(fmt::format("an operand has too few axes: {}", ir::to_string(given)));
    const std::int64_t here =
        number_of(given.shape[axis], axis == 0 ? "the batch" : "the length of a sequence");
    if (all && here != *all)
      operator_error(fmt::format("along axis {} operands have {} and {}", axis, *all, here));
    all = here;
  };
  for (int i = 1; i < node_.input_size(); ++i) {
    agree(entries, type(operand(i)), 0);
    if (i > carried_) agree(length, type(operand(i)), 1);
  }
  if (*entries == 0 || *length == 0) {
    scan_nothing(*entries, *length);
    return;
  }
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(*entries), *length);
  if (has_operand(0)) {
    const ir::Tensor* known = scope_.graph->constant(operand(0));
    if (!known) operator_error("the lengths of the sequences must be known at compile time");
    if (known->type() != ir::TensorType{ir::ElementType::kInt64, {*entries}}) {
      operator_error(
          fmt::format("the lengths must be int64[{}], not {}", *entries, ir::to_string(known->type())));
    }
    lengths = known->ints();
  }
  std::vector<Values> carried(static_cast<std::size_t>(carried_)), rows(static_cast<std::size_t>(rows_));
  for (std::int64_t b = 0; b < *entries; ++b) {
    const std::int64_t own = lengths[static_cast<std::size_t>(b)];
    if (own < 1 || own > *length)
      operator_error(fmt::format("the length {} is outside [1, {}]", own, *length));
    Bindings first;
    std::vector<Scanned> scanned;
    for (int i = 1; i < node_.input_size(); ++i) {
      const std::string name = fmt::format("{}/{}/{}", name_, b, body_->input(i - 1).name());
      const ir::ValueId entry = slice(operand(i), 0, b, name);
      if (i <= carried_) first.push_back(Binding::of(entry));
      if (i > carried_)
        scanned.push_back({entry, 0, is_backward(directions, static_cast<std::size_t>(i - carried_ - 1))});
      if (own < *length && !scanned.empty() && scanned.back().is_backward) {
        operator_error("a sequence that is scanned from its end must not be shorter than others");
      }
    }
    Ran ran = run_scan(fmt::format("{}/", b), std::move(first), scanned, own);
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i].push_back(ran.carried[i].value);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::string name =
          fmt::format("{}/{}/{}", name_, b, body_->output(carried_ + static_cast<int>(k)).name());
      for (std::int64_t t = own; t < *length; ++t) {
        ran.rows[k].push_back(zeros(type(ran.rows[k][0]), name + "/none"));
      }
      if (is_read(carried_ + static_cast<int>(k)))
        rows[k].push_back(stacked(ran.rows[k], 0, false, name + "/rows"));
    }
  }
  for (int i = 0; i < node_.output_size(); ++i) {
    if (!is_read(i)) continue;
    const Values& entries_of = i < carried_ ? carried[i] : rows[i - carried_];
    bind_result(i, Binding::of(stacked(entries_of, 0, false, scope_.prefix + node_.output(i))));
  }
}

/// The body for each element of the first operand; of other sequences it takes the elements beside that one.
void Importer::Trips::sequence_map() {
  read_attributes();
  begin(0, 0, 0);
  const Binding first = given(0);
  if (first.state != Binding::State::kSequence) operator_error("the first input must be a sequence");
  const std::size_t length = first.sequence->values.size();
  Bindings operands;
  for (int i = 0; i < node_.input_size(); ++i) {
    operands.push_back(given(i));
    if (operands.back().state != Binding::State::kSequence) {
      operand(i);
    } else if (operands.back().sequence->values.size() != length) {
      operator_error(fmt::format("its sequences have {} and {} elements", length,
                                 operands.back().sequence->values.size()));
    }
  }
  std::vector<Values> rows(static_cast<std::size_t>(rows_));
  for (std::size_t t = 0; t < length; ++t) {
    Bindings inputs;
    for (const Binding& each : operands)
      inputs.push_back(each.sequence ? Binding::of(each.sequence->values[t]) : each);
    const Bindings outputs = trip(std::to_string(t), inputs);
    for (int k = 0; k < rows_; ++k) rows[static_cast<std::size_t>(k)].push_back(row_of(outputs, k));
  }
  for (int k = 0; k < rows_; ++k) {
    if (!is_read(k)) continue;
    const Values& values = rows[static_cast<std::size_t>(k)];
    const PortType declared = port_type(body_->output(k).type());
    const auto element = !values.empty()   ? type(values[0]).element
                         : declared.tensor ? element_type_of(declared.tensor->elem_type())
                                           : std::nullopt;
    if (!element) {
      operator_error(fmt::format("its sequences are empty, and the body does not declare the type of '{}'",
                                 printable(body_->output(k).name())));
    }
    bind_result(k, Binding::of(sequence_of(values, *element)));
  }
}

void Importer::import_trips(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope,
                            void (Trips::*import)()) {
  import_made(node, scope, [&] {
    Trips trips(*this, node, op, scope);
    (trips.*import)();
  });
}

void Importer::import_loop(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  import_trips(node, op, scope, &Trips::loop);
}

void Importer::import_scan(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  import_trips(node, op, scope, &Trips::scan);
}

void Importer::import_sequence_map(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  import_trips(node, op, scope, &Trips::sequence_map);
}

}  // namespace gcompile::frontend
