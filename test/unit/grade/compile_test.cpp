#include <fcntl.h>
#include <sys/stat.h>

#include "grading.h"
#include "verifier/grade/compile.h"
#include "verifier/grade/grade.h"

using namespace kbench::grade;

namespace {
std::string refusal(const std::string& folder, const SourceLimits& limits = {}) {
  try {
    read_sources(folder, limits);
  } catch (const BadSubmission& fault) {
    return fault.what();
  }
  return "";
}
}  // namespace

TEST_CASE("sources: those a language knows, by name, with folders") {
  const TemporaryFolder f;
  std::filesystem::create_directories(f.path + "/include/deep");
  put(f.path + "/b.cpp", "b");
  put(f.path + "/a.cu", "a");
  put(f.path + "/include/deep/t.cuh", "t");
  put(f.path + "/README.md", "-");
  put(f.path + "/.hidden.cpp", "-");
  put(f.path + "/odd name.txt", "-");
  std::filesystem::create_symlink("/etc/passwd", f.path + "/notes.txt");  // not of ours: left alone
  const auto sources = read_sources(f.path, {});
  REQUIRE(sources.size() == 3);
  CHECK(sources[0].path == "a.cu");
  CHECK(sources[1].path == "b.cpp");
  CHECK(sources[2].path == "include/deep/t.cuh");
  CHECK(sources[2].content == "t");
}

TEST_CASE("sources: links, FIFOs and strange names are refused, never followed") {
  const TemporaryFolder f;
  SECTION("symbolic link") {
    std::filesystem::create_symlink("/etc/passwd", f.path + "/a.cpp");
    CHECK(refusal(f.path).find("symbolic link") != std::string::npos);
  }
  SECTION("link to a folder") {
    std::filesystem::create_directory_symlink("/etc", f.path + "/x.h");
    CHECK(refusal(f.path).find("symbolic link") != std::string::npos);
  }
  SECTION("hard link") {
    put(f.path + "/other", "x");
    std::filesystem::create_hard_link(f.path + "/other", f.path + "/a.cpp");
    CHECK(refusal(f.path).find("hard link") != std::string::npos);
  }
  SECTION("FIFO") {
    REQUIRE(::mkfifo((f.path + "/a.cpp").c_str(), 0666) == 0);
    CHECK(refusal(f.path).find("regular") != std::string::npos);
  }
  SECTION("a name that is an option, or has other characters") {
    const std::string name = GENERATE("-fplugin=x.cpp", "a b.cpp", "a;b.cpp", "\xc3\xa4.cpp", "a\nb.cpp");
    put(f.path + "/" + name, "x");
    CHECK(!refusal(f.path).empty());
  }
  CHECK_THROWS_AS(read_sources(f.path + "/nowhere", {}), GradeFault);
}

TEST_CASE("sources: each limit at its edge") {
  const TemporaryFolder f;
  SourceLimits limits;
  limits.files_max = 2, limits.depth_max = 1, limits.file_bytes_max = 10, limits.total_bytes_max = 15;
  put(f.path + "/a.cpp", std::string(10, 'x'));
  std::filesystem::create_directories(f.path + "/d/e");
  put(f.path + "/d/b.h", "12345");
  CHECK(refusal(f.path, limits).find("nest") != std::string::npos);
  std::filesystem::remove(f.path + "/d/e");
  CHECK(refusal(f.path, limits).empty());
  SECTION("bytes of one") {
    put(f.path + "/a.cpp", std::string(11, 'x'));
    CHECK(refusal(f.path, limits).find("larger") != std::string::npos);
  }
  SECTION("bytes of all") {
    put(f.path + "/d/b.h", "123456");
    CHECK(refusal(f.path, limits).find("in all") != std::string::npos);
  }
  SECTION("count") {
    put(f.path + "/c.h", "");
    CHECK(refusal(f.path, limits).find("2 files") != std::string::npos);
  }
  SECTION("names") {
    put(f.path + "/" + std::string(96, 'n') + ".cpp", "");
    limits.files_max = 3;
    CHECK(refusal(f.path, limits).empty());
    put(f.path + "/" + std::string(97, 'n') + ".cpp", "");
    limits.files_max = 4;
    CHECK(refusal(f.path, limits).find("more than 100 characters") != std::string::npos);
  }
}

TEST_CASE("artefact: a library or modules, nothing else") {
  const TemporaryFolder f;
  CHECK_THROWS_AS(read_artefact(f.path, {}), BadSubmission);
  put(f.path + "/solution.py", "x");
  CHECK(read_artefact(f.path, {}).front().path == "solution.py");
  put(f.path + "/submission.so", "so");
  REQUIRE(read_artefact(f.path, {}).size() == 1);
  CHECK(read_artefact(f.path, {}).front().content == "so");
  SourceLimits limits;
  limits.artefact_bytes_max = 1;
  CHECK_THROWS_AS(read_artefact(f.path, limits), BadSubmission);
  std::filesystem::remove(f.path + "/submission.so");
  std::filesystem::create_symlink("/bin/ls", f.path + "/submission.so");
  CHECK_THROWS_AS(read_artefact(f.path, {}), BadSubmission);
}

TEST_CASE("subprocess: output is captured, capped and escaped") {
  const TemporaryFolder f;
  ProcessLimits limits;
  ProcessResult r = run_bounded({"sh", "-c", "printf 'a\\033[31m\\377'; echo b >&2; pwd; exit 3"}, f.path, limits);
  CHECK(r.exit_code == 3);
  CHECK(!r.timed_out);
  CHECK(r.log.find('\x1b') == std::string::npos);
  CHECK(r.log.find("b\n") != std::string::npos);
  CHECK(r.log.find(f.path) != std::string::npos);
  limits.log_bytes = 1000;
  r = run_bounded({"sh", "-c", "head -c 1000 /dev/zero | tr '\\0' x"}, f.path, limits);
  CHECK(r.log == std::string(1000, 'x'));
  r = run_bounded({"sh", "-c", "head -c 1001 /dev/zero | tr '\\0' x"}, f.path, limits);
  CHECK(r.log.find("[1 more bytes dropped]") != std::string::npos);
}

TEST_CASE("subprocess: environment, time, size and missing programs") {
  const TemporaryFolder f;
  ::setenv("KBENCH_SECRET", "1", 1);
  CHECK(run_bounded({"sh", "-c", "env"}, f.path, {}).log.find("KBENCH_SECRET") == std::string::npos);
  ProcessLimits limits;
  limits.wall = std::chrono::seconds(1);
  const auto start = std::chrono::steady_clock::now();
  CHECK(run_bounded({"sh", "-c", "sleep 60 & sleep 60"}, f.path, limits).timed_out);
  CHECK(run_bounded({"sh", "-c", "exec >&- 2>&-; sleep 60"}, f.path, limits).timed_out);  // closes what we read from
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  limits.file_bytes = 1 << 20;
  CHECK(run_bounded({"sh", "-c", "head -c 2000000 /dev/zero > big"}, f.path, limits).exit_code != 0);
  CHECK(std::filesystem::file_size(f.path + "/big") <= 1 << 20);
  CHECK(run_bounded({"no-such-program"}, f.path, {}).exit_code == 127);
}

TEST_CASE("compile: the command writes an artefact and compile.json, and says what failed") {
  const TemporaryFolder in, out;
  const std::string command =
      "compile --task " + kTask + " --submission " + in.path + " --out " + out.path + " --device cpu";
  put(in.path + "/solution.cpp", submission("", ""));
  REQUIRE(verify(command) == 0);
  CHECK(std::filesystem::file_size(out.path + "/artefact/submission.so") > 0);
  CompileResult result = read_compile_json(out.path);
  CHECK(result.ok);
  CHECK(result.language == "cpp");
  CHECK(verify("compile --task " + std::filesystem::relative(kTask).string() + " --submission " + in.path + " --out " +
               out.path + " --device cpu") == 0);
  put(in.path + "/solution.cpp", "#error broken here\n");
  CHECK(verify(command + " 2>/dev/null") == 1);
  result = read_compile_json(out.path);
  CHECK(!result.ok);
  CHECK(result.log.find("broken here") != std::string::npos);
  put(in.path + "/solution.cpp", "template <int N> struct A { A<N + 1> a; };\n#include __FILE__\nint main() {}");
  CHECK(verify(command + " --seconds 2 2>/dev/null") == 1);
  CHECK(verify("compile --task /nowhere --submission /tmp --out /tmp --device cpu 2>/dev/null") == 2);
  put(in.path + "/kernel.cu", "");
  CHECK(verify(command + " --language cuda 2>/dev/null") == 1);
  CHECK(read_compile_json(out.path).log.find("device cuda") != std::string::npos);
  std::filesystem::remove(in.path + "/kernel.cu");
  std::filesystem::remove(in.path + "/solution.cpp");
  put(in.path + "/solution.h", "");
  const std::string on_cuda = command + " --device cuda --language cuda 2>/dev/null";
  CHECK(verify(on_cuda) == 1);
  CHECK(read_compile_json(out.path).log.find("no *.cu or *.cpp") != std::string::npos);
  put(in.path + "/solution.cpp", submission("", ""));  // calls of a library do without a kernel of their own
  verify(on_cuda);
  CHECK(read_compile_json(out.path).log.find("no *.cu") == std::string::npos);
}

TEST_CASE("compile: Python is checked and copied") {
  const TemporaryFolder in, out;
  const std::string command =
      "compile --task " + kTask + " --submission " + in.path + " --out " + out.path + " --device cpu";
  std::filesystem::create_directory(in.path + "/parts");
  put(in.path + "/solution.py", "from parts import tile\n");
  put(in.path + "/parts/tile.py", "x = 1\n");
  REQUIRE(verify(command) == 0);
  CHECK(std::filesystem::exists(out.path + "/artefact/parts/tile.py"));
  put(in.path + "/parts/tile.py", "x = = 1\n");
  CHECK(verify(command + " 2>/dev/null") == 1);
  CHECK(read_compile_json(out.path).log.find("SyntaxError") != std::string::npos);
}

TEST_CASE("compile: a compile.json that a submission wrote is not believed blindly") {
  const TemporaryFolder f;
  const std::string text =
      GENERATE("", "[]", "{\"ok\": 1}",
               "{\"ok\":true,\"exit_code\":1e300,\"seconds\":0,\"log\":\"\",\"compiler\":\"\",\"language\":\"\"}",
               "{\"ok\":true,\"exit_code\":0,\"seconds\":\"x\",\"log\":\"\",\"compiler\":\"\",\"language\":\"\"}");
  put(f.path + "/compile.json", text);
  CHECK_THROWS_AS(read_compile_json(f.path), GradeFault);
}
