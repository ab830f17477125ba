// A submission's body and its Content-Type (the first line), as JSON or as a form, then every check of it.
#include "daemon/api/input.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  static const std::vector<api::Task> tasks = {
      {"raw-cuda/copy", "Copy", "1", "hash", "GB/s", 1, {"cpu", "cuda"}, {"cpp", "cuda", "python"}, "text"},
      {"other/copy", "Copy", "1", "hash", "GB/s", 2, {"cuda"}, {"cuda"}, "text"}};
  static const std::vector<api::SlotStatus> slots = {{"cpu0", "cpu", "processor", "", "free", "", ""},
                                                     {"gpu0", "cuda", "NVIDIA H200", "GPU-a", "free", "", ""}};
  api::Limits limits;
  limits.files_max = 4;
  limits.labels_max = 3;
  limits.file_bytes_max = 200;
  Input input(data, size);
  http::Request request;
  request.method = "POST";
  request.headers["content-type"] = input.line();
  request.body = input.rest();
  try {
    const api::Draft draft = api::read_draft(request, limits);
    const store::NewSubmission made = api::checked(draft, tasks, slots, limits);
    require(made.files.size() <= limits.files_max, "no more files than the limit");
    require(made.labels.size() <= limits.labels_max, "no more labels than the limit");
    require(made.priority >= limits.priority_min && made.priority <= limits.priority_max, "a priority in its range");
    for (const store::File& file : made.files) {
      require(file.content.size() <= limits.file_bytes_max, "no file longer than the limit");
      require(!file.path.empty() && file.path.front() != '/' && file.path.find("..") == file.path.npos,
              "no path that leaves the folder");
    }
  } catch (const http::Problem& problem) {
    require(problem.status >= 400 && problem.status < 500, "a client's fault is a 4xx");
    require(http::valid_utf8(http::problem(problem).body), "an answer in UTF-8");
  }
  return 0;
}
