// The Python host, where there is a Python with PyTorch.
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "test/unit/process/sandbox.h"

using namespace kbench;
using namespace kbench::process;
using namespace kbench::test;
using namespace std::chrono_literals;
using verify::Ended;

namespace {

constexpr uid_t kUid = 210'030;
constexpr char kTask[] = R"json({"dims": ["N"], "derived": [{"name": "H", "expression": "N // 2"}],
  "scalars": [{"name": "scale", "type": "f32", "value": 2}, {"name": "shift", "type": "f64", "value": 0.5}],
  "tensors": [{"name": "x", "dtype": "f32", "shape": ["H", "N/H"], "role": "input"},
              {"name": "c", "dtype": "e4m3", "shape": ["N"], "role": "input"},
              {"name": "y", "dtype": "bf16", "shape": ["H", "min(2, N)"], "role": "output"}]})json";

constexpr char kTaskOfTwo[] = R"json({"gpus": 2, "dims": ["N"], "derived": [], "scalars": [],
  "tensors": [{"name": "x", "dtype": "f32", "shape": ["N"], "role": "inout"}]})json";

bool has_torch() {
  static const bool found = system("/usr/bin/python3 -c 'import torch' >/dev/null 2>&1") == 0;
  return found;
}

struct PythonRun {
  // On two GPUs: x[0] is x, x[1] is c.
  explicit PythonRun(const std::string& solution, std::uint32_t gpus = 1)
      : home(make_folder(kUid)), x(4096), c(4096), y(4096) {
    write_file(kUid, home + "/solution.py", solution);
    write_file(kUid, home + "/task.json", gpus == 1 ? kTask : kTaskOfTwo);
    protocol::Setup setup{};
    setup.magic = protocol::kMagic;
    setup.version = protocol::kVersion;
    setup.gpus = gpus;
    setup.tensor_count = gpus == 1 ? 3 : 2;
    for (std::uint32_t i = 0; i < setup.tensor_count; ++i) setup.tensors[i] = {4096, 256};
    setup.shape_count = 1;
    const float scale = 2;
    const double shift = 0.5;
    std::vector<std::uint64_t> slots = {10, 5, 0, 0, 0, 1, 2};
    std::memcpy(&slots[2], &scale, 4);
    std::memcpy(&slots[3], &shift, 8);
    if (gpus == 2) slots = {10, 0, 1};
    setup.shapes[0].slot_count = static_cast<std::uint32_t>(slots.size());
    setup.shapes[0].first_pointer = setup.shapes[0].slot_count - setup.tensor_count;
    std::copy(slots.begin(), slots.end(), setup.shapes[0].slots);
    std::vector<int> fds = {x.fd, c.fd, y.fd};
    fds.resize(setup.tensor_count);
    Command command;
    command.arguments = {"/usr/bin/python3",  "-B",        KBENCH_TEST_PYTHON_HOST, "--task-json",
                         home + "/task.json", "--library", KBENCH_TEST_LIBRARY,     home};
    command.uid = kUid;
    command.home = home;
    worker = WorkerProcess::start(command, setup, fds);
  }
  ~PythonRun() {
    worker.reset();
    WipeOptions options;
    options.folders = {home};
    kill_and_wipe(kUid, options);
    run_as(kUid, [&] { return rmdir(home.c_str()); }, 5s);
  }
  Ended call() {
    const std::uint32_t epoch = worker->next_epoch();
    worker->go(epoch);
    return worker->wait_done(epoch, 20s);
  }
  float* x_at() { return x.data + 64; }
  std::string home;
  PlainBuffer x, c, y;
  std::unique_ptr<WorkerProcess> worker;
};

}  // namespace

TEST_CASE("a Python submission gets numbers and tensors by name and writes outputs in place") {
  if (!has_torch()) {
    WARN("no PyTorch here: not tested");
    return;
  }
  PythonRun run(R"(
import os, torch
def kbench_run(N, H, scale, shift, x, c, y):
    assert (N, H, scale, shift) == (10, 5, 2.0, 0.5), (N, H, scale, shift)
    assert x.shape == (5, 2) and x.dtype == torch.float32 and c.shape == (10,) and c.element_size() == 1
    assert y.shape == (5, 2) and y.dtype == torch.bfloat16 and y.is_contiguous()
    assert os.environ["TRITON_CACHE_DIR"].startswith(os.environ["HOME"])
    y.copy_(x * scale + shift + c.view(torch.uint8).view(5, 2).float())
)");
  const Ended ready = run.worker->wait_ready(60s);
  INFO(run.worker->text() << run.worker->output());
  REQUIRE(ready == Ended::done);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) {
      run.x_at()[i] = static_cast<float>(i + round);
      reinterpret_cast<unsigned char*>(run.c.data)[256 + i] = static_cast<unsigned char>(i);
    }
    REQUIRE(run.call() == Ended::done);
    for (int i = 0; i < 10; ++i) {
      const std::uint32_t bits = reinterpret_cast<std::uint16_t*>(run.y.data)[128 + i] << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      CHECK(value == static_cast<float>((i + round) * 2 + i) + 0.5f);
    }
  }
  run.worker->leave();
  CHECK(run.worker->exit_facts().code == 0);
}

TEST_CASE("a Python submission on two GPUs gets a list of each tensor") {
  if (!has_torch()) {
    WARN("no PyTorch here: not tested");
    return;
  }
  PythonRun run(R"(
def kbench_run(N, x):
    assert N == 10 and isinstance(x, list) and len(x) == 2 and x[0].shape == (10,), (N, x)
    x[0].add_(x[1])
    x[1].fill_(7)
)",
                2);
  const Ended ready = run.worker->wait_ready(60s);
  INFO(run.worker->text() << run.worker->output());
  REQUIRE(ready == Ended::done);
  for (int i = 0; i < 10; ++i) run.x_at()[i] = 1, run.c.data[64 + i] = static_cast<float>(i);
  REQUIRE(run.call() == Ended::done);
  for (int i = 0; i < 10; ++i) {
    CHECK(run.x_at()[i] == static_cast<float>(1 + i));
    CHECK(run.c.data[64 + i] == 7);
  }
}

TEST_CASE("a Python submission's exceptions are shown") {
  if (!has_torch()) {
    WARN("no PyTorch here: not tested");
    return;
  }
  PythonRun run("def kbench_run(**args):\n    raise ValueError('no \\u00e9')\n");
  REQUIRE(run.worker->wait_ready(60s) == Ended::done);
  CHECK(run.call() == Ended::refused);
  CHECK(run.worker->code() == 1);
  CHECK(run.worker->text() == "ValueError: no \\xc3\\xa9");
  CHECK(run.worker->output().find("Traceback") != std::string::npos);
}

TEST_CASE("a Python submission that does not load says why") {
  if (!has_torch()) {
    WARN("no PyTorch here: not tested");
    return;
  }
  const auto [text, words] =
      GENERATE(std::pair{"import nothing_of_the_kind\n", "ModuleNotFoundError"},
               std::pair{"x = 1\n", "no function kbench_run"}, std::pair{"raise SystemExit(0)\n", "SystemExit"});
  PythonRun run(text);
  CHECK(run.worker->wait_ready(60s) == Ended::refused);
  CHECK(run.worker->text().find(words) != std::string::npos);
}
