// An event stream as the client reads it: wherever it is cut, the same events come out.
#include "client/client.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

std::string events_in(std::string_view bytes, std::size_t step) {
  std::string out;
  client::EventParser parser;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    parser.feed(bytes.substr(0, step), [&](const client::Event& event) {
      require(!event.type.empty(), "an event has a type");
      require((event.id + event.type).find_first_of("\r\n") == std::string::npos, "id and type are one line");
      require(event.data.find('\r') == std::string::npos, "lines of data end in a line feed");
      out += event.id + "\n" + event.type + "\n" + event.data + "\n---\n";
    });
  }
  return out;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const std::size_t step = 1 + input.byte();
  const std::string_view bytes = input.rest();
  const auto whole = events_in(bytes, bytes.size() + 1);
  require(events_in(bytes, step) == whole, "the same events, wherever it is cut");
  require(events_in(bytes, 1) == whole, "the same events, byte by byte");
  return 0;
}
