// Every rule about a submission's content. A fault names the field and the fix.
#include <kbench/sources.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <stdexcept>

#include "daemon/api/input.h"

namespace kbench::api {
namespace {

constexpr std::size_t kSuggestionsMax = 3;

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const auto& each : list) out += (out.empty() ? "" : ", ") + each;
  return out;
}

class Sha256 {
 public:
  Sha256() {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::runtime_error("SHA-256 is not to be had");
  }
  // Each field with its length before it: no two lists of fields give the same bytes.
  Sha256& field(std::string_view text) {
    const auto length = std::to_string(text.size()) + ":";
    EVP_DigestUpdate(context_.get(), length.data(), length.size());
    EVP_DigestUpdate(context_.get(), text.data(), text.size());
    return *this;
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &length);
    std::string out;
    for (unsigned i = 0; i < length; ++i) {
      out += "0123456789abcdef"[bytes[i] >> 4];
      out += "0123456789abcdef"[bytes[i] & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

// Empty when good, else the fix. Names reach compilers' command lines and a tar archive: plain ASCII, nothing that
// could be an option.
std::string fault_of_path(const std::string& path, const Limits& limits) {
  if (path.empty()) return "Give the file a name.";
  if (path.size() > limits.path_bytes_max)
    return "Use at most " + limit_text(limits.path_bytes_max, "characters", "path_bytes_max") + ".";
  if (path.front() == '/') return "Use a name relative to the submission's folder.";
  if (std::count(path.begin(), path.end(), '/') > sources::kFoldersDeepMax)
    return "Use at most " + std::to_string(sources::kFoldersDeepMax) + " folders, one within the other.";
  std::size_t start = 0;
  while (start <= path.size()) {
    const auto end = std::min(path.find('/', start), path.size());
    const auto step = path.substr(start, end - start);
    if (step.empty() || step == "." || step == "..") return "Leave out empty, . and .. steps.";
    if (step.front() == '-' || step.front() == '.') return "Start names with a letter, a digit or _.";
    if (step.size() > sources::kNameBytesMax)
      return "Use at most " + std::to_string(sources::kNameBytesMax) + " characters between two /.";
    if (step == sources::kSkippedFolder) return "Use another name: what is called " + step + " is left alone.";
    if (!std::all_of(step.begin(), step.end(), sources::plain))
      return "Use letters, digits and . _ - + only, with / between folders.";
    start = end + 1;
  }
  return "";
}

void check_files(const Draft& draft, const Limits& limits, Faults& faults) {
  if (draft.files.empty()) faults.add("files", "no file", "Send at least one source file.");
  if (draft.files.size() > limits.files_max) {
    faults.add_too_large("files", "more than " + std::to_string(limits.files_max) + " files",
                         "Send at most " + limit_text(limits.files_max, "files", "files_max") + ".");
    return;
  }
  std::set<std::string> paths, folders;
  std::size_t total = 0;
  for (const auto& file : draft.files) {
    const std::string field = "files[\"" + file.path.substr(0, limits.path_bytes_max) + "\"]";
    total += file.content.size();
    if (const auto fix = fault_of_path(file.path, limits); !fix.empty()) {
      faults.add(field, "a name that a file cannot have here", fix);
      continue;
    }
    if (!paths.insert(file.path).second) faults.add(field, "file given twice", "Give it once.");
    for (auto slash = file.path.find('/'); slash != std::string::npos; slash = file.path.find('/', slash + 1)) {
      folders.insert(file.path.substr(0, slash));
    }
    if (file.content.size() > limits.file_bytes_max) {
      faults.add_too_large(field, "more than " + std::to_string(limits.file_bytes_max) + " bytes",
                           "Send at most " + limit_text(limits.file_bytes_max, "bytes", "file_bytes_max") + " a file.");
    } else if (!http::valid_utf8(file.content) || file.content.find('\0') != std::string::npos) {
      faults.add(field, "not UTF-8 text", "Send sources as UTF-8 without NUL.");
    }
  }
  for (const auto& folder : folders) {
    if (paths.count(folder) != 0) faults.add("files[\"" + folder + "\"]", "both a file and a folder", "Rename one.");
  }
  if (total > limits.files_bytes_max) {
    faults.add_too_large("files", "more than " + std::to_string(limits.files_bytes_max) + " bytes together",
                         "Send at most " + limit_text(limits.files_bytes_max, "bytes", "files_bytes_max") + ".");
  }
}

void check_labels(const Draft& draft, const Limits& limits, Faults& faults) {
  if (draft.labels.size() > limits.labels_max)
    faults.add("labels", "more than " + std::to_string(limits.labels_max) + " labels",
               "Send at most " + limit_text(limits.labels_max, "labels", "labels_max") + ".");
  for (const auto& [name, value] : draft.labels) {
    const std::string field = "labels[\"" + name.substr(0, limits.label_name_bytes_max) + "\"]";
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    });
    if (name.empty() || name.size() > limits.label_name_bytes_max || !plain) {
      faults.add(field, "a name that a label cannot have",
                 "Use letters, digits, . _ -: at least one, at most " +
                     limit_text(limits.label_name_bytes_max, "bytes", "label_name_bytes_max") + ".");
    }
    const bool printable = std::none_of(value.begin(), value.end(),
                                        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
    if (value.size() > limits.label_value_bytes_max || !printable || !http::valid_utf8(value)) {
      faults.add(field, "a value that a label cannot have",
                 "Use one line of UTF-8, at most " +
                     limit_text(limits.label_value_bytes_max, "bytes", "label_value_bytes_max") + ".");
    }
  }
}

std::string language_of(const Draft& draft, Faults& faults) {
  const auto has = [&](std::string_view ending) {
    return std::any_of(draft.files.begin(), draft.files.end(),
                       [&](const store::File& file) { return file.path.ends_with(ending); });
  };
  const auto named = [&](std::string_view name) {
    return std::any_of(draft.files.begin(), draft.files.end(),
                       [&](const store::File& file) { return file.path == name; });
  };
  auto language = draft.language;
  if (draft.files.empty()) return language;  // said before
  if (language.empty()) {
    const bool compiled = has(".cu") || has(".cpp");
    if (compiled && named("solution.py")) {
      faults.add("language", "the files are of several languages", "Set language to cuda, cpp or python.");
      return "";
    }
    language = has(".cu") ? "cuda" : has(".cpp") ? "cpp" : named("solution.py") ? "python" : "";
    if (language.empty()) faults.add("files", "no source file", "Send a *.cu, a *.cpp, or solution.py.");
    return language;
  }
  if (language == "cpp" && !has(".cpp")) faults.add("files", "no *.cpp", "A submission in cpp has at least one.");
  if (language == "cuda" && !has(".cu") && !has(".cpp"))
    faults.add("files", "no *.cu", "A submission in cuda has at least one *.cu or *.cpp.");
  if (language == "python" && !named("solution.py"))
    faults.add("files", "no solution.py", "A submission in python has one, in its top folder.");
  return language;
}

std::string device_of(const Draft& draft, const Task& task, const std::vector<SlotStatus>& slots, Faults& faults) {
  const auto served = [&](const std::string& device) {
    return std::any_of(slots.begin(), slots.end(), [&](const SlotStatus& slot) { return slot.device == device; });
  };
  if (draft.device.empty()) {
    for (const char* device : {"cuda", "cpu"}) {
      if (contains(task.devices, device) && served(device)) return device;
    }
    faults.add("device", "this server has no slot for any device of the task",
               "The task runs on " + joined(task.devices) + "; see /api/v1/gpus.");
  } else if (!contains(task.devices, draft.device)) {
    faults.add("device", task.id + " does not run on " + draft.device, "Choose of " + joined(task.devices) + ".");
  } else if (!served(draft.device)) {
    faults.add("device", "this server has no slot for " + draft.device, "See /api/v1/gpus for what it has.");
  }
  return draft.device;
}

void check_gpus(const store::NewSubmission& wanted, const std::vector<SlotStatus>& slots, Faults& faults) {
  if (wanted.device != "cuda") {
    if (!wanted.gpu_model.empty())
      faults.add("gpu_model", "a GPU model on the device " + wanted.device, "Leave it out, or choose the device cuda.");
    return;
  }
  std::map<std::string, int> models;
  for (const auto& slot : slots) models[slot.model] += slot.device == "cuda" ? 1 : 0;
  int most = 0;
  for (const auto& [model, number] : models) most = std::max(most, number);
  if (wanted.gpu_model.empty() && most < wanted.gpus) {
    faults.add("task",
               "needs " + std::to_string(wanted.gpus) + " GPUs of one model; this server has " + std::to_string(most),
               "See /api/v1/gpus.");
  } else if (!wanted.gpu_model.empty() && models[wanted.gpu_model] < wanted.gpus) {
    faults.add("gpu_model", "this server does not have " + std::to_string(wanted.gpus) + " × " + wanted.gpu_model,
               "See /api/v1/gpus.");
  }
}

std::size_t distance(std::string_view a, std::string_view b) {  // Levenshtein
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string name_in(const Task& task) { return task.id.substr(task.id.find('/') + 1); }

}  // namespace

const Task* find_task(const std::vector<Task>& tasks, const std::string& id, std::string& fix) {
  const bool whole = id.find('/') != std::string::npos;
  std::vector<const Task*> found;
  for (const auto& task : tasks) {
    if ((whole ? task.id : name_in(task)) == id) found.push_back(&task);
  }
  if (found.size() == 1) return found[0];
  fix = "GET /api/v1/tasks lists them all.";
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto* task : found) near.emplace_back(0, task->id);
  if (found.empty() && id.size() <= 200) {
    for (const auto& task : tasks) {
      const auto off = distance(id, whole ? task.id : name_in(task));
      const bool within = !whole && id.size() >= 3 && task.id.find(id) != std::string::npos;
      if (off <= 2 + id.size() / 4 || within) near.emplace_back(within ? std::min<std::size_t>(off, 2) : off, task.id);
    }
  }
  std::sort(near.begin(), near.end());
  for (std::size_t i = std::min(near.size(), kSuggestionsMax); i-- > 0;) {
    fix.insert(0, near[i].second + (i + 1 == std::min(near.size(), kSuggestionsMax) ? "? " : ", "));
  }
  if (!near.empty()) fix.insert(0, "Did you mean ");
  return nullptr;
}

store::NewSubmission checked(const Draft& draft, const std::vector<Task>& tasks, const std::vector<SlotStatus>& slots,
                             const Limits& limits) {
  Faults faults;
  store::NewSubmission out;
  std::string fix;
  const Task* task = nullptr;
  if (draft.task.empty()) {
    faults.add("task", "no task", "Name the task; GET /api/v1/tasks lists them.");
  } else if (task = find_task(tasks, draft.task, fix); task == nullptr) {
    faults.add("task", "unknown task " + draft.task.substr(0, 200), fix);
  }
  check_files(draft, limits, faults);
  check_labels(draft, limits, faults);
  out.language = language_of(draft, faults);
  if (draft.priority < limits.priority_min || draft.priority > limits.priority_max) {
    faults.add("priority", "priority out of range",
               "Send " + std::to_string(limits.priority_min) + " to " + std::to_string(limits.priority_max) +
                   " (submissions.priority_min and priority_max).");
  }
  out.gpu_model = draft.gpu_model;
  if (task != nullptr) {
    out.task = task->id;
    out.task_hash = task->hash;
    out.device = device_of(draft, *task, slots, faults);
    out.gpus = out.device == "cuda" ? task->gpus : 0;
    check_gpus(out, slots, faults);
    if (!out.language.empty() && !contains(task->languages, out.language)) {
      faults.add("language", task->id + " does not take " + out.language, "Choose of " + joined(task->languages) + ".");
    } else if (out.language == "cuda" && out.device == "cpu") {
      faults.add("language", "cuda sources on the device cpu", "Send *.cpp for the cpu, or choose the device cuda.");
    }
  }
  if (task == nullptr) {  // what no task has
    if (!draft.device.empty() && draft.device != "cpu" && draft.device != "cuda")
      faults.add("device", "unknown device " + draft.device, "Choose of cpu, cuda.");
    if (!draft.language.empty() && draft.language != "cuda" && draft.language != "cpp" && draft.language != "python")
      faults.add("language", "unknown language " + draft.language, "Choose of cuda, cpp, python.");
  }
  faults.throw_any();
  out.priority = static_cast<int>(draft.priority);
  out.labels = draft.labels;
  out.files = draft.files;
  std::sort(out.files.begin(), out.files.end(),
            [](const store::File& a, const store::File& b) { return a.path < b.path; });
  Sha256 sources, whole;
  for (const auto& file : out.files) sources.field(file.path).field(file.content);
  out.source_hash = sources.hex();
  // What was asked for, not what was filled in: a later slot or default must not turn a retry into another request.
  whole.field(out.task)
      .field(draft.device)
      .field(draft.language)
      .field(draft.gpu_model)
      .field(std::to_string(draft.priority));
  for (const auto& [name, value] : draft.labels) whole.field(name).field(value);
  out.body_hash = whole.field("files").field(out.source_hash).hex();
  return out;
}

}  // namespace kbench::api
