// A request target.
#include "daemon/http/target.h"
#include "daemon/http/http.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

KBENCH_FUZZ_TARGET(data, size) {
  try {
    const http::Target target = http::decode_target({reinterpret_cast<const char*>(data), size});
    for (const std::string& segment : target.segments) {
      require(!segment.empty() && segment != "." && segment != "..", "no step that is none");
      require(segment.find('/') == segment.npos && segment.find('\0') == segment.npos, "no hidden slash");
      require(http::valid_utf8(segment), "UTF-8");
    }
  } catch (const http::Problem& problem) {
    require(problem.status == 400, "a 400");
  }
  return 0;
}
