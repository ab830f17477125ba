// What the Engine streams: JSON objects, multiplexed logs, text for people. Cut anywhere it is the same.
#include "daemon/engine/streams.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

constexpr std::size_t kBytesMax = 256;

// In pieces of `step` bytes, what comes out, with where it failed.
std::string objects(std::string_view bytes, std::size_t step) {
  std::string out;
  engine::JsonSplitter splitter(kBytesMax, [&](std::string_view object) {
    require(object.size() <= kBytesMax && object.front() == '{' && object.back() == '}', "an object within its limit");
    out += std::string(object) + "\n";
  });
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) splitter.feed(bytes.substr(0, step));
    out += splitter.between() ? "between" : "inside";
  } catch (const engine::BadStream& bad) {
    out += bad.what();
  }
  return out;
}

std::string logs(std::string_view bytes, std::size_t step) {
  std::string out;
  engine::LogDemuxer demuxer(kBytesMax, [&](engine::LogDemuxer::Source source, std::string_view text) {
    for (const char c : text) out += {static_cast<char>('0' + static_cast<int>(source)), c};
  });
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) demuxer.feed(bytes.substr(0, step));
    out += demuxer.between() ? "between" : "inside";
  } catch (const engine::BadStream& bad) {
    out += bad.what();
  }
  return out;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const std::size_t step = 1 + input.byte();
  const std::string_view bytes = input.rest();
  require(objects(bytes, step) == objects(bytes, bytes.size() + 1), "the same objects, wherever it is cut");
  require(logs(bytes, step) == logs(bytes, bytes.size() + 1), "the same logs, wherever they are cut");
  const std::string safe = engine::sanitised(bytes);
  require(engine::sanitised(safe) == safe, "what is safe stays as it is");
  for (const char c : safe)
    require(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t', "no control characters");
  require(safe.find('\x7f') == safe.npos, "no delete");
  engine::TailText tail(step);
  for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min(step, rest.size())))
    tail.add(rest.substr(0, step));
  constexpr std::size_t kNotice = 64, kReplacement = 3;  // a byte that is no UTF-8 becomes three
  require(tail.text().size() <= kReplacement * step + kNotice, "the end of a text, no more");
  return 0;
}
