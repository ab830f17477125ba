// What fuzz targets share. A target reads bytes as a stranger sends them, and fails by require() where the decoder's
// promise is broken; crashes, leaks and undefined behaviour are the sanitizers' to find.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::fuzz {

inline void require(bool holds, std::string_view promise) {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}

// Takes an input apart from its front; an empty input gives zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  // A text up to the next line feed, or of `count` bytes.
  std::string line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return text;
  }
  std::string text(std::size_t count) {
    std::string text(rest_.substr(0, count));
    rest_.remove_prefix(text.size());
    return text;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// The parts between lines of "---".
inline std::vector<std::string> sections(std::string_view text) {
  constexpr std::string_view kBetween = "\n---\n";
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(kBetween);
    parts.emplace_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + kBetween.size());
  }
}

}  // namespace kbench::fuzz

#define KBENCH_FUZZ_TARGET(input, size) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size)
