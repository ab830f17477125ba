// A small definition that is right, to be made wrong in one place.
#pragma once

#include <stdexcept>
#include <string>

namespace sample {

inline const std::string kToml = R"__(title = "Twice"
version = "1"
metric = "GB/s"
op = "y[i] = 2 x[i]"
distinguishing = "none"
independent = "x + x"
source = "here"
keywords = ["elementwise"]

[dims]
names = ["N", "K"]
derived = ["NK = N*K"]
tiny = { N = 5, K = 3 }
test = [{ N = 7, K = 11 }]
graded = [{ N = 1000, K = 2000 }, { N = 2000, K = 2000 }]
odd = { N = [1, 9] }

[work]
flops = "NK"
bytes = "8*NK"
bound = "memory"

[[scalars]]
name = "factor"
type = "f64"
value = 2

[[tensors]]
name = "x"
role = "input"
dtype = "f32"
shape = ["N", "K"]
gen = "normal(0,1)"

[[tensors]]
name = "y"
role = "output"
dtype = "f32"
shape = ["NK"]
rule = "near(scale=tensor)"

[precision]
conditions = "by hand"

[precision.y]
floor_max = 0
floor_rms = 0
control_max = 100
control_rms = 100
max = 4
rms = 1.7
)__";

inline const std::string kHeader = R"__(#pragma once
#include "kbench/parallel.h"
#include "task.h"
inline void reference(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[i] = float(a.factor) * a.x[i]; });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[i] = a.x[i] + a.x[i]; });
}
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[i] = a.x[i]; });
}
)__";

// The same on two GPUs: each doubles its own x.
inline const std::string kHeaderOfTwo = R"__(#pragma once
#include "kbench/parallel.h"
#include "task.h"
inline void reference(const kbench_args& a, kbench_exec& exec) {
  for (int gpu = 0; gpu < kbench_gpus; ++gpu)
    kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[gpu][i] = float(a.factor) * a.x[gpu][i]; });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  for (int gpu = 0; gpu < kbench_gpus; ++gpu)
    kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[gpu][i] = a.x[gpu][i] + a.x[gpu][i]; });
}
inline void control(const kbench_args& a, kbench_exec& exec) {
  for (int gpu = 0; gpu < kbench_gpus; ++gpu)
    kb::parallel_for(exec, a.NK, KB_LAMBDA(long long i) { a.y[gpu][i] = a.x[0][i] + a.x[1][i]; });
}
)__";

// `text` with its only occurrence of `from` replaced; aborts the test when that is not so.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos)
    throw std::logic_error("'" + from + "' does not occur once");
  return text.replace(at, from.size(), to);
}

inline std::string toml_of_two() {
  std::string text = with(kToml, "metric = \"GB/s\"\n", "metric = \"GB/s\"\ngpus = 2\n");
  text = with(text, "role = \"input\"\n", "role = \"input\"\nplacement = \"shard\"\n");
  return with(text, "role = \"output\"\n", "role = \"output\"\nplacement = \"shard\"\n");
}

}  // namespace sample
