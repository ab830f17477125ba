// Floor, control and tolerance of a task, measured: what the independent implementation and the negative control differ
// from the reference by, in the units of each output's rule, on the cpu device.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "generator/bench.h"
#include "generator/render.h"

namespace kbench::generator {
namespace {

namespace fs = std::filesystem;

const std::vector<std::uint64_t> kSeeds = {1, 2};
constexpr double kFactor = 4;      // tolerance over floor, and control over tolerance
constexpr double kRoundedMax = 1;  // the floor of an output that is rounded: u, and
constexpr double kLogarithm =
    2.5e-5;  // the floor of an absolute difference: logarithms of fp32 sums by the GPU's own exp2 and log2
constexpr double kRoundedRms = 0.41;  // the rms of a uniform rounding error over that of the value

// A tolerance is no more exact than two digits; rounded up.
double two_digits(double value) {
  if (value <= 0) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(value))) - 1;
  return std::stod(number_text(std::ceil(value / std::pow(10, exponent) - 1e-9)) + "e" + std::to_string(exponent));
}

double three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::stod(text);
}

// The tolerance is four floors. A floor is at least what the rounding of the output alone can make of two honest
// results.
Measured conclude(const Tensor& tensor, const Differences& d) {
  Measured m{three_digits(d.floor_max * kUnmeasured),
             three_digits(d.floor_rms),
             three_digits(d.control_max * kUnmeasured),
             three_digits(d.control_rms),
             {}};
  const auto is = [&](const char* rule) { return tensor.rule.find(rule) != std::string::npos; };
  const bool by_unit = is("near") || is("delta");
  const double rounded_max = by_unit ? kRoundedMax : is("abs") ? kLogarithm : 2 * unit_roundoff(tensor.dtype);
  m.tolerance.max = two_digits(kFactor * std::max(d.floor_max * kUnmeasured, rounded_max));
  m.tolerance.rms = by_unit ? two_digits(kFactor * std::max(d.floor_rms, kRoundedRms)) : 0;
  return m;
}

std::string section_of(const std::string& tensor, const Measured& m) {
  return "\n[precision." + tensor + "]\nfloor_max = " + number_text(m.floor_max) +
         "\nfloor_rms = " + number_text(m.floor_rms) + "\ncontrol_max = " + number_text(m.control_max) +
         "\ncontrol_rms = " + number_text(m.control_rms) + "\nmax = " + number_text(m.tolerance.max) +
         "\nrms = " + number_text(m.tolerance.rms) + "\n";
}

std::string conditions(const verify::Device& device, bool cuda) {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  if (!cuda)
    return std::string(date) + ", cpu, tiny, test and precision dims, " + std::to_string(kSeeds.size()) + " seeds each";
  return std::string(date) + ", " + device.facts().name + ", driver " + device.facts().driver +
         ", tiny, precision and graded dims";
}

// The references' times at graded dims, in ms; recorded, since they bound what a grading can check.
std::string times_of(const std::vector<double>& seconds, std::size_t graded) {
  std::string text;
  for (std::size_t i = seconds.size() - graded; i < seconds.size(); ++i)
    text += (text.empty() ? "" : ", ") + number_text(three_digits(1e3 * seconds[i]));
  return "reference_ms = [" + text + "]\n";
}

// In the place of what was measured before, and of the [lint] that stood on it.
void write_section(const fs::path& file, const std::string& section) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const char* head : {"\n[precision]", "\n[lint]"})
    if (const auto at = text.find(head); at != std::string::npos) text.resize(at);
  while (text.ends_with("\n\n")) text.pop_back();
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << "\n" << section;
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

}  // namespace

void measure_precision(const std::string& root, const std::string& id, bool cuda) {
  const Definition definition = load(root, id, Tolerances::to_be_measured);
  const Problem &problem = definition.problem, spread_out = spread(problem);
  const Author author(root, definition, cuda);
  const std::unique_ptr<verify::Device> device =
      cuda ? verify::open_cuda_device(problem.gpus) : verify::open_cpu_device();
  std::vector<Shape> shapes = problem.tiny;
  const auto add = [&](const std::vector<Shape>& more) { shapes.insert(shapes.end(), more.begin(), more.end()); };
  if (!cuda) add(problem.test);
  add(definition.precision_shapes);
  if (cuda) add(problem.graded);
  std::vector<double> seconds;
  const std::map<std::string, Differences> found =
      differences(*device, spread_out, author, shapes, cuda ? std::vector{kSeeds[0]} : kSeeds, &seconds);

  std::string section, faults;
  bool control_fails = false;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role == Role::input) continue;
    const Differences& d = found.at(tensor.name);
    if (tensor.tolerance.max != kUnmeasured) {  // a rule without a tolerance
      if (!d.independent_passes) faults += id + ": " + tensor.name + ": independent differs from reference\n";
      control_fails = control_fails || !d.control_passes;
      continue;
    }
    if (!std::isfinite(d.floor_max) || !std::isfinite(d.floor_rms)) {
      faults += id + ": " + tensor.name +
                ": independent or reference has what is not a number, or leaves elements unwritten\n";
      continue;
    }
    const Measured m = conclude(tensor, d);
    // One as wrong as nothing at all tells no floor.
    const bool zeros_pass =
        d.zeros_max * kUnmeasured <= m.tolerance.max && (m.tolerance.rms == 0 || d.zeros_rms <= m.tolerance.rms);
    if (zeros_pass && !definition.exceptions.contains("zeros"))
      faults += id + ": " + tensor.name +
                ": a tolerance of four floors would let zeros pass: independent and reference differ\n";
    control_fails = control_fails || m.control_max >= kFactor * m.tolerance.max ||
                    (m.tolerance.rms > 0 && m.control_rms >= kFactor * m.tolerance.rms);
    section += section_of(tensor.name, m);
    std::printf("%s %s: floor %.3g / %.3g, tolerance %.3g / %.3g, control %.3g / %.3g (max / rms)\n", id.c_str(),
                tensor.name.c_str(), m.floor_max, m.floor_rms, m.tolerance.max, m.tolerance.rms, m.control_max,
                m.control_rms);
  }
  if (!control_fails) faults += id + ": the control is not 4 tolerances away in any output\n";
  if (!faults.empty()) throw std::runtime_error(faults.substr(0, faults.size() - 1));
  // Without a tolerance too: the section says that all three were run, and where.
  section = "[precision]\nconditions = \"" + conditions(*device, cuda) + "\"\n" +
            (cuda ? times_of(seconds, problem.graded.size()) : "") + section;
  write_section(fs::path(root) / ("catalog/" + id + ".toml"), section);
}

}  // namespace kbench::generator
