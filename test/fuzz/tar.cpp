// A build context, written and read back by a reader of its own: what is in it is what was given. And a Dockerfile,
// whose stages are labelled: nothing else of it changes.
#include <map>
#include <sstream>

#include "daemon/engine/impl.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;

namespace {

std::string field(std::string_view header, std::size_t at, std::size_t length) {
  const std::string_view text = header.substr(at, length);
  return std::string(text.substr(0, text.find('\0')));
}

std::map<std::string, std::pair<std::string, bool>> read(std::string_view tar) {
  std::map<std::string, std::pair<std::string, bool>> files;
  while (tar.size() >= 512 && tar[0] != '\0') {
    const std::string_view header = tar.substr(0, 512);
    require(header.substr(257, 6) == std::string_view("ustar\0", 6), "ustar");
    require(header[156] == '0', "regular files only");
    require(field(header, 108, 8) == "000000 " && field(header, 116, 8) == "000000 ", "of nobody in particular");
    const std::string prefix = field(header, 345, 155), name = field(header, 0, 100);
    const auto size = std::stoull(field(header, 124, 12), nullptr, 8);
    require(512 + size <= tar.size(), "all of the content");
    files[prefix.empty() ? name : prefix + "/" + name] = {std::string(tar.substr(512, size)),
                                                          (std::stoul(field(header, 100, 8), nullptr, 8) & 0100) != 0};
    tar.remove_prefix(512 + (size + 511) / 512 * 512);
  }
  require(tar.size() >= 1024, "two empty blocks at the end");
  return files;
}

constexpr char kLabel[] = "LABEL fuzz.a=1 fuzz.b=x-y";

std::string labelled(const std::string& dockerfile) {
  return engine::labelled(dockerfile, {{"fuzz.a", "1"}, {"fuzz.b", "x-y"}});
}

// The text without the labels, and how many there were.
std::pair<std::string, std::size_t> without_labels(const std::string& text) {
  std::string rest;
  std::size_t labels = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == kLabel) {
      ++labels;
    } else {
      rest += line + "\n";
    }
  }
  return {rest, labels};
}

void check_labels(const std::string& text) {
  if (text.find("LABEL fuzz") != text.npos) return;
  const std::string once = labelled(text);
  const auto [rest, labels] = without_labels(once);
  require(rest == text || rest == text + "\n", "the same instructions");
  require(without_labels(labelled(once)).second == 2 * labels, "the labels begin no stage and end none");
  std::string begun = "FROM x\n" + labelled("FROM y\n" + text);
  require(begun.starts_with(std::string("FROM x\nFROM y\n") + kLabel + "\n"), "a stage begins with its labels");
  require(labelled(text + "\n\nfrom z\n").ends_with(kLabel + std::string("\n")) || text.find('\\') != text.npos,
          "the last stage, too");
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  check_labels({reinterpret_cast<const char*>(data), size});
  Input input(data, size);
  std::vector<engine::TarEntry> entries;
  std::map<std::string, std::pair<std::string, bool>> given;
  while (!input.rest().empty() && entries.size() < 20) {
    engine::TarEntry entry;
    entry.executable = input.byte() % 2 == 1;
    const std::size_t length = input.byte();
    entry.path = input.line();
    entry.content = input.text(length);
    given[entry.path] = {entry.content, entry.executable};
    entries.push_back(std::move(entry));
  }
  const engine::TarLimits limits{.files_max = 15, .bytes_max = 2000};
  try {
    require(read(engine::write_tar(entries, limits)) == given, "the same files");
  } catch (const engine::BadTar&) {
  }
  return 0;
}
