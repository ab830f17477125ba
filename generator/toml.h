// toml++ for this folder and its tests, which must all have it alike. Where the library meets what it takes for
// impossible it would end the process, or, in a release, go on regardless. Inside the folder only.
#pragma once

#undef NDEBUG
#include <stdexcept>

namespace kbench::generator {
struct ParserConfused : std::logic_error {
  using std::logic_error::logic_error;
};
}  // namespace kbench::generator

#define TOML_ASSERT(condition) \
  ((condition) ? void() : throw kbench::generator::ParserConfused("not TOML, in a way that has no name"))
#include <toml++/toml.h>
