#include "driver/verify/verify_findings.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diagnostics.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

/// JSON has no infinity.
nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json("infinite");
}

/// The error's root mean square in units of the noise's.
double noise_ratio(const KernelFinding& f) {
  if (f.comparison.rms_error == 0) return 0;
  return f.comparison.rms_error / f.noise.rms;
}

}  // namespace

std::string finding_text(const Finding& f) {
  const Comparison& c = f.comparison;
  std::string text = fmt::format("{}: {} {}", f.case_name, printable(f.value), to_string(f.type));
  if (!c.mismatch.empty()) return text + ": " + c.mismatch;
  if (c.worst < 0) return text + ": equal";
  const bool is_float = ir::is_float(f.type.element);
  text += fmt::format(": worst {:.3g}{} at {}: expected {:.9g}, got {:.9g}", c.worst_ratio,
                      is_float ? " of the tolerance" : " off", position_text(f.type.shape, c.worst),
                      c.expected, c.actual);
  if (c.wrong > 0) text += fmt::format("; {} of {} elements outside", c.wrong, f.type.count());
  if (c.rms_ratio > 0) text += fmt::format("; together {:.3g} of the tolerance", c.rms_ratio);
  if (f.noise) {
    text += fmt::format("; rounding alone moves it by {:.3g}{}", f.noise->worst_ratio,
                        f.is_right ? ": the model is ill-conditioned here, not the program wrong" : "");
  }
  return text;
}

nlohmann::ordered_json finding_json(const Finding& f) {
  const Comparison& c = f.comparison;
  nlohmann::ordered_json out = {
      {"case", f.case_name}, {"value", f.value}, {"type", to_string(f.type)}, {"ok", f.is_right}};
  if (!c.mismatch.empty()) out["mismatch"] = c.mismatch;
  if (c.worst >= 0) {
    out["worst_ratio"] = json_number(c.worst_ratio);
    out["at"] = position_text(f.type.shape, c.worst);
    out["expected"] = fmt::format("{:.9g}", c.expected);
    out["actual"] = fmt::format("{:.9g}", c.actual);
    out["wrong"] = c.wrong;
    if (c.rms_ratio > 0) out["rms_ratio"] = c.rms_ratio;
  }
  if (f.noise) {
    out["noise_ratio"] = json_number(f.noise->worst_ratio);
    out["ill_conditioned"] = f.is_ill_conditioned();
  }
  return out;
}

std::string kernel_text(const std::string& case_name, const KernelFinding& f) {
  const Comparison& c = f.comparison;
  std::string text = fmt::format("{}: the kernel of {} ({}) {}: ", case_name, printable(f.value),
                                 printable(f.origins), to_string(f.type));
  if (!c.mismatch.empty()) return text + c.mismatch;
  if (!ir::is_float(f.type.element)) {
    return text + fmt::format("{} of {} elements are wrong for its operands", c.wrong, f.type.count());
  }
  text += fmt::format("its error is {:.3g} times what rounding alone does in it", noise_ratio(f));
  if (c.worst >= 0) {
    text += fmt::format("; worst at {}: expected {:.9g}, got {:.9g}", position_text(f.type.shape, c.worst),
                        c.expected, c.actual);
  }
  return text;
}

nlohmann::ordered_json kernel_json(const std::string& case_name, const KernelFinding& f) {
  return {{"case", case_name},
          {"value", f.value},
          {"origins", f.origins},
          {"ok", f.is_right},
          {"noise", json_number(f.relative)},
          {"error_in_noise", json_number(noise_ratio(f))}};
}

}  // namespace gcompile
