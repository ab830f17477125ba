// A task on two GPUs, graded on the cpu device: where both are plain memory, and the streams are null.
#include "grading.h"

namespace {

// The catalogue's task at its tiny size, which is quick.
std::string task_of_two() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    const std::string from =
        std::string(KBENCH_SOURCE) + "/tasks/distributed-multi-gpu/tp-allreduce-residual-rmsnorm/tests";
    for (const char* name : {"task.h", "reference.h"}) put(folder.path + "/" + name, text_of(from + "/" + name));
    nlohmann::json task = json_of(from + "/task.json");
    task["test"] = nlohmann::json::array({task["tiny"][0]});
    task["test"][0]["name"] = "test0";
    put(folder.path + "/task.json", task.dump());
    // Compiled once; found beside the task.
    REQUIRE(verify("reference --tests " + folder.path + " --device cpu --out " + folder.path + "/reference-cpu.so") ==
            0);
    return true;
  }();
  return made ? folder.path : "";
}

// A right submission with a place for mischief: before each GPU's rows, of which it computes [0, rows), and behind all.
Grading grade_on_two(const std::string& each, const std::string& after, const std::string& peer = "1 - gpu") {
  const TemporaryFolder submission;
  put(submission.path + "/solution.cpp", R"(#include <cmath>
#include "task.h"
extern "C" int kbench_run(const kbench_args* a, kbench_stream streams) {
  const long long D = a->D;
  for (int gpu = 0; gpu < kbench_gpus; ++gpu) {
    long long rows = a->TT;
    if (kbench_stream_of(streams, gpu) != nullptr) return 7;
    )" + each + R"(
    for (long long t = 0; t < rows; ++t) {
      float squares = 0;
      for (long long i = t * D; i < (t + 1) * D; ++i) {
        a->res_out[gpu][i] = kb::bf16(float(a->part[gpu][i]) + float(a->part[)" +
                                             peer + R"(][i]) + float(a->res[gpu][i]));
        squares += float(a->res_out[gpu][i]) * float(a->res_out[gpu][i]);
      }
      for (long long d = 0; d < D; ++d)
        a->y[gpu][t * D + d] = kb::bf16(float(a->res_out[gpu][t * D + d]) /
                                        std::sqrt(squares / float(D) + a->eps) * float(a->w[gpu][d]));
    }
  }
  )" + after + R"(
  return 0;
}
)");
  return grade_folder(submission.path, "", task_of_two());
}

}  // namespace

TEST_CASE("two GPUs: a right submission is correct, and its work is credited once") {
  const Grading g = grade_on_two("", "");
  INFO(g.details.dump(1).substr(0, 2000) << g.infra.dump());
  REQUIRE(g.verdict() == "correct");
  CHECK(g.value() > 0);
  CHECK(g.details["shapes"][0]["work"] == 7 * 23 * 200 + 2 * 200);  // of one GPU
  for (const auto& odd : g.details["odd"]) CHECK(odd["passed"] == true);
}

TEST_CASE("two GPUs: what is wrong on the second alone is wrong, and is named") {
  const Grading skipped = grade_on_two("if (gpu == 1) --rows;", "");
  CHECK(skipped.verdict() == "incorrect");
  CHECK(skipped.reason().find("res_out[1]") != std::string::npos);
  const Grading local = grade_on_two("", "", "gpu");
  CHECK(local.verdict() == "incorrect");
  CHECK(local.reason().find("res_out[0]") != std::string::npos);
}

TEST_CASE("two GPUs: both have guards, and residuals that are the same") {
  const Grading stray = grade_on_two("", "const_cast<kb::bf16*>(a->w[1])[-1] = kb::bf16(1.0f);");
  CHECK(stray.verdict() == "integrity_violation");
  CHECK(stray.details["rule"] == "guard_write");
  const Grading same = grade_on_two(
      "", "for (long long i = 0; i < a->TT * D; ++i) if (float(a->res[0][i]) != float(a->res[1][i])) return 8;");
  CHECK(same.verdict() == "correct");
  const Grading shards = grade_on_two("",
                                      "for (long long i = 0; i < a->TT * D; ++i) if (float(a->part[0][i]) != "
                                      "float(a->part[1][i])) return 0;\nreturn 9;");
  CHECK(shards.verdict() == "correct");
}
