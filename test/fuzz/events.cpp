// The verifier's events as the daemon reads them: at once, and line by line.
#include <nlohmann/json.hpp>

#include "daemon/grader/event_log.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using Json = nlohmann::json;

namespace {

struct Taken {
  std::vector<std::string> events;
  std::int64_t last_seq = 0;
  grader::EventLog log{[this](std::int64_t seq, const std::string& type, const std::string& json) {
    require(seq == last_seq + 1, "one after the other");
    require(!type.empty() && Json::parse(json).is_object(), "what is kept is an object of a type");
    last_seq = seq;
    events.push_back(json);
  }};
};

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Taken whole, lines, twice;
  const auto answer = whole.log.take(text);
  require(answer.next == whole.log.next(), "the answer says what is lacking");
  Input input(data, size);
  for (auto each = grader::EventLog::Answer{200, 1}; !input.rest().empty() && each.status == 200;)
    each = lines.log.take(input.line() + "\n");
  require(lines.events == whole.events && lines.log.last() == whole.log.last(), "the same, however it is cut");
  twice.log.take(text);
  twice.log.take(text);
  require(twice.events == whole.events && twice.log.last() == whole.log.last(), "the same, however often it comes");
  return 0;
}
