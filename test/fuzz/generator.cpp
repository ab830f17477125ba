// An input distribution: read, compiled, and the tensor made, as the devices make it. The first byte is the dtype.
#include "test/fuzz/fuzz.h"
#include "test/unit/inputs/made.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const auto dtype = static_cast<DType>(input.byte() % 15);
  const std::string gen(input.rest());
  const Dims dims = {{"N", 24}, {"M", 4}, {"K", 6}, {"big", std::int64_t{1} << 40}};
  const std::vector<inputs_test::Source> sources = {{"x", dtype, {"M", "K"}, gen},
                                                    {"p", DType::i32, {"N"}, "perm(N)"},
                                                    {"o", DType::i32, {"M+1"}, "offsets(M,N,1,12)"},
                                                    {"s", DType::f32, {"M", "K"}, "normal(0,1)"}};
  try {
    const auto read = inputs_test::Made(sources, dims);
    require(inputs_test::Made(sources, dims).bytes("x") == read.bytes("x"), "the same bits again");
  } catch (const inputs::BadGenerator& bad) {
    require(*bad.what() != '\0', "a reason");
  } catch (const BadExpression&) {
  }
  return 0;
}
