// Whole gradings on the cpu device: real workers under real uids. Runs as root.
#include "grading.h"

#include <regex>
#include <set>

TEST_CASE("grade: a right submission gets a reward and says how it was measured") {
  const Grading g = grade_source(submission("", "if (a->N > 4000) write(1, \"\\x1b[31mPASS reward=1e9\\n\", 21);"));
  REQUIRE(g.exit == 0);
  INFO(g.details.dump(1).substr(0, 3000));
  REQUIRE(g.verdict() == "correct");
  CHECK(g.value() > 0);
  CHECK(g.reward.size() == 1);
  CHECK(g.details["reward"] == g.reward["reward"]);
  CHECK(g.details["metric"] == "GB/s");
  CHECK(g.details["interval"][0] <= g.reward["reward"]);
  CHECK(g.details["interval"][1] >= g.reward["reward"]);
  CHECK(g.infra.is_null());
  REQUIRE(g.details["runs"].size() == 5);
  std::vector<std::string> seeds;
  for (const auto& run : g.details["runs"]) {
    CHECK(run["samples"].size() == 36);
    // All of them with so cheap a reference, but on a busy machine not even that is certain: never fewer than two a
    // shape.
    const auto compared = std::count_if(run["samples"].begin(), run["samples"].end(),
                                        [](const nlohmann::json& sample) { return sample["compared"] == true; });
    CHECK(run["compared"] == compared);
    CHECK(compared >= 4);
    CHECK(run["shapes"][0]["count"] == 15);
    for (const auto& sample : run["samples"]) seeds.push_back(sample["seed"]);
  }
  std::sort(seeds.begin(), seeds.end());
  CHECK(std::adjacent_find(seeds.begin(), seeds.end()) == seeds.end());
  CHECK(g.details["calibration"].size() == 2);
  CHECK(g.details["odd"].size() == 2);
  for (const auto& odd : g.details["odd"]) CHECK(odd["passed"] == true);
  CHECK(g.details["device"]["kind"] == "cpu");
  CHECK(g.details["compile"]["compiler"].get<std::string>().find("g++") == 0);
  const std::string log = g.details["runs"][0]["log"];  // the worker's words: escaped, and they change nothing
  CHECK(log.find("PASS reward") != std::string::npos);
  CHECK(log.find('\x1b') == std::string::npos);
  REQUIRE(!g.events.empty());
  CHECK(g.events.front()["type"] == "started");
  CHECK(g.events.back()["type"] == "verdict");
  CHECK(g.events.back()["reward"] == g.reward["reward"]);
}

TEST_CASE("grade: one wrong element in one tensor is incorrect") {
  const Grading g = grade_source(submission("", "a->acc[a->N - 1] += 1;"));
  CHECK(g.verdict() == "incorrect");
  CHECK(g.value() == 0);
  CHECK(g.reason().find("acc") != std::string::npos);
  CHECK(g.reason().find("run 1") != std::string::npos);
}

TEST_CASE("grade: right ten times, then wrong") {
  const Grading g = grade_source(submission("", "if (++calls > 10) a->y[7] = 0;", "static int calls = 0;"));
  CHECK(g.verdict() == "incorrect");
}

TEST_CASE("grade: done before the work is done") {
  const Grading g = grade_source(
      "#include \"task.h\"\n#include <thread>\n#include <chrono>\n"
      "extern \"C\" int kbench_run(const kbench_args* given, kbench_stream) {\n"
      "  static kbench_args kept; kept = *given;\n"
      "  std::thread([] { const kbench_args* a = &kept;\n"
      "    for (long long i = 0; i < a->N; ++i) { a->y[i] = a->s * a->x[i]; a->acc[i] += a->x[i]; } }).detach();\n"
      "  return 0;\n}\n");
  CHECK((g.verdict() == "incorrect" || g.verdict() == "integrity_violation"));
  CHECK(g.value() == 0);
}

TEST_CASE("grade: outputs replayed for fresh inputs are incorrect") {
  const Grading g =
      grade_source(submission("if (kept_n == a->N) { memcpy(a->y, kept, a->N * 4); return 0; }",
                              "kept = (float*)malloc(a->N * 4); memcpy(kept, a->y, a->N * 4); kept_n = a->N;",
                              "static float* kept = nullptr; static long long kept_n = 0;"));
  CHECK(g.verdict() == "incorrect");
}

TEST_CASE("grade: a write outside the tensors is a violation") {
  const std::string where = GENERATE("a->y[-1] = 0;", "a->y[a->N] = 0;", "((float*)a->x)[a->N + 100] = 0;");
  const Grading g = grade_source(submission("", where));
  CHECK(g.verdict() == "integrity_violation");
  CHECK(g.details["rule"] == "guard_write");
  CHECK(g.value() == 0);
}

TEST_CASE("grade: a crash, an exit and a refusal are runtime errors") {
  SECTION("crash") {
    const Grading g =
        grade_source(submission("if (++calls == 5) *(volatile int*)nullptr = 1;", "", "static int calls = 0;"));
    CHECK(g.verdict() == "runtime_error");
    CHECK(g.reason().find("SIGSEGV") != std::string::npos);
  }
  SECTION("exit 0") {
    const Grading g =
        grade_source(submission("if (++calls == 5) { write(2, \"one\\nlib \\x1b[1mis missing\\n\", 23); _exit(0); }",
                                "", "static int calls = 0;"));
    CHECK(g.verdict() == "runtime_error");
    CHECK(g.reason().find("exited with code 0") != std::string::npos);
    CHECK(g.reason().find("last it said: lib \\x1b[1mis missing") != std::string::npos);
  }
  SECTION("refusal") {
    const Grading g = grade_source(submission("", "return 42;"));
    CHECK(g.verdict() == "runtime_error");
    CHECK(g.reason().find("returned 42") != std::string::npos);
  }
  SECTION("exit while loading") {
    const Grading g =
        grade_source(submission("", "", "__attribute__((constructor)) static void early() { _exit(0); }"));
    CHECK(g.verdict() == "runtime_error");
  }
}

TEST_CASE("grade: a call that hangs is a timeout, in prepare and later") {
  SECTION("prepare") {
    const Grading g = grade_source(submission("for (;;) pause();", ""), "--prepare-seconds 0.5");
    CHECK(g.verdict() == "timeout");
    CHECK(g.reason().find("prepare") != std::string::npos);
  }
  SECTION("repetition") {
    const Grading g = grade_source(submission("if (++calls > 4) for (;;) pause();", "", "static int calls = 0;"),
                                   "--repetition-seconds 0.5");
    CHECK(g.verdict() == "timeout");
  }
  SECTION("all calls together") {
    const Grading g = grade_source(submission("usleep(100000);", ""), "--measure-seconds 1");
    CHECK(g.verdict() == "timeout");
    CHECK(g.reason().find("together") != std::string::npos);
  }
}

TEST_CASE("grade: what does not compile") {
  SECTION("syntax") {
    const Grading g = grade_source("int kbench_run( {\n");
    CHECK(g.verdict() == "compile_error");
    CHECK(g.reason().find("error") != std::string::npos);
    CHECK(g.value() == 0);
  }
  SECTION("no entry point: the fix is named") {
    const Grading g = grade_source(
        "#include \"task.h\"\nint kbench_run(const kbench_args*, kbench_stream) ;\nint other() { return 0; }\n");
    CHECK(g.verdict() == "compile_error");
    CHECK(g.reason().find("extern \"C\" int kbench_run") != std::string::npos);
  }
  SECTION("an empty folder") {
    const TemporaryFolder nothing;
    CHECK(grade_folder(nothing.path).verdict() == "compile_error");
  }
}

TEST_CASE("grade: an odd shape that fails is reported and does not decide") {
  SECTION("wrong") {
    const Grading g = grade_source(submission("if (a->N <= 4000) return 0;", ""));
    CHECK(g.verdict() == "correct");
    REQUIRE(g.details["odd"].size() == 2);
    CHECK(g.details["odd"][0]["passed"] == false);
  }
  SECTION("dead") {
    const Grading g = grade_source(submission("if (a->N <= 4000) abort();", ""));
    CHECK(g.verdict() == "correct");
    REQUIRE(g.details["odd"].size() == 2);
    CHECK(g.details["odd"][0]["reason"].get<std::string>().find("SIGABRT") != std::string::npos);
    CHECK(g.details["odd"][1]["reason"] == "not reached");
  }
}

TEST_CASE("grade: faults of ours are no verdict") {
  const TemporaryFolder task, submission_folder;
  put(submission_folder.path + "/solution.cpp", submission("", ""));
  std::filesystem::copy(kTask, task.path, std::filesystem::copy_options::recursive);
  SECTION("a task that is not one") {
    put(task.path + "/task.json", "{}");
    const Grading g = grade_folder(submission_folder.path, "", task.path);
    CHECK(g.exit == 3);
    CHECK(g.infra["cause"] == "task");
    CHECK(g.reward.is_null());  // nor the planted one
    CHECK(g.events.back()["type"] == "infra_error");
  }
  SECTION("a reference that cannot be loaded") {
    put(task.path + "/broken.so", "not a library");
    const Grading g = grade_folder(submission_folder.path, "--reference " + task.path + "/broken.so", task.path);
    CHECK(g.exit == 3);
    CHECK(g.infra["cause"] == "reference");
  }
  SECTION("no GPU here") {
    if (std::filesystem::exists("/dev/nvidia0")) return;
    const Grading g = grade_folder(submission_folder.path, "--device cuda", task.path);
    CHECK(g.exit == 3);
    CHECK(g.infra["cause"] == "device");
  }
  SECTION("no PyTorch for a submission in Python") {
    const TemporaryFolder python;
    put(python.path + "/solution.py", "def kbench_run(**arguments):\n    pass\n");
    nlohmann::json admitting = nlohmann::json::parse(text_of(kTask + "/task.json"));
    admitting["languages"] = {"cpp", "python"};
    put(task.path + "/task.json", admitting.dump());
    const std::string path = ::getenv("PATH");
    ::setenv("PATH", "/nowhere", 1);
    const Grading g = grade_folder(python.path, "", task.path);
    ::setenv("PATH", path.c_str(), 1);
    CHECK(g.exit == 3);
    CHECK(g.infra["cause"] == "image");
    CHECK_THAT(g.infra.value("message", ""), Catch::Contains("scripts/build-base --python"));
  }
}

TEST_CASE("measure: a closed working folder does no harm, a closed installation is named with the fix") {
  namespace fs = std::filesystem;
  const TemporaryFolder closed, work;
  put(work.path + "/solution.cpp", submission("", ""));
  fs::create_directory(closed.path + "/bin");
  for (const char* program : {"kbench-verify", "kbench-worker"})
    fs::copy(fs::path(KBENCH_VERIFY).parent_path() / program, closed.path + "/bin");
  fs::copy(KBENCH_SOURCE "/sdk", closed.path + "/include", fs::copy_options::recursive);
  fs::permissions(closed.path, fs::perms::owner_all);
  const auto measure = [&](const std::string& program) {
    return run("cd " + closed.path + " && " + program + " measure --task " + kTask + " --submission " + work.path +
               " --device cpu --uid-base " + std::to_string(uid_base()) + " >" + work.path + "/said 2>&1");
  };
  CHECK(measure(KBENCH_VERIFY) == 0);
  CHECK(text_of(work.path + "/said").find("correct\nreward ") != std::string::npos);
  CHECK(measure(closed.path + "/bin/kbench-verify") == 3);
  CHECK_THAT(text_of(work.path + "/said"), Catch::Contains("chmod o+rx " + closed.path));
}

TEST_CASE("grade: usage errors") {
  CHECK(verify("--version >/dev/null") == 0);
  CHECK(verify("--help >/dev/null") == 0);
  CHECK(verify("2>/dev/null") == 2);
  CHECK(verify("grade --tests /nowhere 2>/dev/null") == 2);
  CHECK(verify("grade --tests " + kTask + " --device cpu --out /tmp 2>/dev/null") ==
        2);  // neither artefact nor submission
  CHECK(verify("measure --task " + kTask + " --device cpu 2>/dev/null") == 2);
}

TEST_CASE("docs/verifier.md has every option, and no other") {
  const std::string page = text_of(KBENCH_SOURCE "/docs/verifier.md");
  const std::regex option("--[a-z][a-z-]+");
  const auto options_in = [&](const std::string& text) {
    return std::set<std::string>(std::sregex_token_iterator(text.begin(), text.end(), option), {});
  };
  const TemporaryFolder folder;
  std::set<std::string> known{"--version", "--install", "--prefix",
                              "--python"};  // of the program, of CMake, of scripts/build-base
  for (const char* command : {"compile", "reference", "grade", "measure"}) {
    REQUIRE(verify(std::string(command) + " --help >" + folder.path + "/help") == 0);
    const std::set<std::string> options = options_in(text_of(folder.path + "/help"));
    for (const std::string& one : options) {
      INFO(command << " " << one);
      CHECK(page.find("`" + one) != std::string::npos);
    }
    known.insert(options.begin(), options.end());
  }
  for (const std::string& one : options_in(page)) {
    INFO(one);
    CHECK(known.contains(one));
  }
}

TEST_CASE("measure: prints a table") {
  const TemporaryFolder folder;
  put(folder.path + "/solution.cpp", submission("", ""));
  REQUIRE(verify("measure --task " + kTask + " --submission " + folder.path + " --device cpu --uid-base " +
                 std::to_string(uid_base()) + " >" + folder.path + "/table") == 0);
  const std::string table = text_of(folder.path + "/table");
  CHECK(table.find("large") != std::string::npos);
  CHECK(table.find("correct\nreward ") != std::string::npos);
}
