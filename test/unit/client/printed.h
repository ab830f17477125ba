// What a command prints, as a text.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace kbench::client::test {

// `file` is for it to pass through.
template <class Command>
std::string printed(const std::filesystem::path& file, const Command& command) {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  if (std::freopen(file.c_str(), "w", stdout) == nullptr) throw std::runtime_error(file.string());
  command();
  std::fflush(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace kbench::client::test
