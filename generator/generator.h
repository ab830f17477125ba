// kbench-catalog: definitions under catalog/ to task folders under tasks/.
//
// A definition is `catalog/<family>/<task>.toml` and `<task>.h`; docs/tasks.md describes both. All that is generated
// follows from them, from generator/templates and from nothing else: the same inputs give the same bytes.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "verifier/problem/problem.h"

namespace kbench::generator {

// Everything wrong with a definition, one fault a line: "catalog/f/t.toml: tensors[2].dtype: unknown 'bf17'; one of
// f64, …".
struct BadDefinition : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What `precision` measured for one tensor, in the units of its rule. The tolerance follows: see precision.h.
struct Measured {
  double floor_max = 0, floor_rms = 0;      // independent against reference
  double control_max = 0, control_rms = 0;  // control against reference
  Tolerance tolerance;
};

struct Precision {
  std::vector<double> reference_ms;         // at graded dims; empty until measured on a GPU
  std::string conditions;                   // date, device, shapes, seeds
  std::map<std::string, Measured> tensors;  // of rules that have a tolerance; may be none
};

// What `lint` found good, and for which meaning of the task.
struct Linted {
  std::string hash, conditions;
  double margin = 0;  // the smallest cheat's error over the largest honest one's
};

struct Definition {
  Problem problem;  // with its hash, and the tolerances of `precision`
  std::string op, distinguishing, independent, source;
  std::vector<std::string> keywords;
  std::vector<Shape>
      precision_shapes;  // where precision is measured besides tiny and test: a graded reduction's length, say
  std::optional<Precision> precision;
  std::optional<Linted> lint;
  std::map<std::string, std::string> exceptions;  // a check of lint that does not hold here, and why
  std::string header;                             // <task>.h: reference, independent, control
  std::string public_header;                      // the part of it that a submitter sees: reference

  std::string id() const { return problem.family + "/" + problem.name; }
};

enum class Tolerances : std::uint8_t { required, to_be_measured };
// Tolerance::max while it is measured, so large that no rule stops at it; rms is 1 then.
inline constexpr double kUnmeasured = 1e9;

// `root` is the repository's folder. Throws BadDefinition.
Definition load(const std::string& root, const std::string& id, Tolerances tolerances = Tolerances::required);
// Same from texts; `file` names them in faults.
Definition parse(const std::string& id, const std::string& file, const std::string& toml, const std::string& header,
                 Tolerances tolerances = Tolerances::required);
// "family/task", sorted. A name may be a task alone where it is unique; throws BadDefinition for names that do not
// exist.
std::vector<std::string> find(const std::string& root, const std::vector<std::string>& names);

// What only the verifier's own readers can find wrong: expressions, sizes, distributions, rules. "tensors[0].gen: …"
std::vector<std::string> faults_of(const Problem& problem);

// The files of a task folder, by path within it. Throws std::runtime_error for a template that cannot be read or
// filled.
std::map<std::string, std::string> render(const std::string& root, const Definition& definition);
std::string task_header(const Problem& problem);                                                // task.h
std::string catalog_json(const std::string& root, const std::vector<Definition>& definitions);  // CATALOG.json
// us that no kernel can beat at the graded sizes, by GPU model of catalog/gpus.toml.
std::map<std::string, std::vector<double>> rooflines(const std::string& root, const Problem& problem);

// Makes `folder` hold exactly `files`. With `check` it only says what differs, one path a line.
std::vector<std::string> write(const std::string& folder, const std::map<std::string, std::string>& files, bool check);

// The rest of tasks/: CATALOG.json, and no folder of a task that is no longer defined.
std::vector<std::string> write_rest(const std::string& root, const std::vector<Definition>& all, bool check);

// A line of the plan (catalog/plan): what is to be written.
struct Planned {
  std::string place;  // file:line
  std::string family, task, title;
  std::string text;  // the whole line, JSON
};
// Of a .jsonl file or of all in a folder. Throws BadDefinition naming file and line.
std::vector<Planned> read_plan(const std::string& path);
// A definition's two files as the plan tells it, by path under catalog/: the header's functions do nothing yet.
std::map<std::string, std::string> begin_definition(const Planned& planned);

struct FamilyStatus {
  std::string family;
  int planned = 0, written = 0, measured = 0, measured_on_gpu = 0, linted = 0;
  std::vector<std::string> faulty, unplanned;  // ids: definitions that do not load; that the plan does not know
};
std::vector<FamilyStatus> status_of(const std::string& root, const std::vector<Planned>& plan);  // sorted by name

// One check of one task: verdict is ok, excepted (the definition says why) or FAILED.
struct LintRow {
  std::string task, check, verdict, detail;
};
// On the cpu: at tiny dims, and at test dims where the reference is quick; cuda: at tiny, test and precision dims.
// Where nothing fails, the definition's [lint] records it. Throws std::runtime_error when the header does not compile.
std::vector<LintRow> lint(const std::string& root, const std::string& id, bool cuda);

// Runs reference, independent and control (cpu: at tiny, test and precision dims; cuda: at tiny, precision and graded
// dims) and writes the precision section of the definition.
void measure_precision(const std::string& root, const std::string& id, bool cuda);

}  // namespace kbench::generator
