#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "daemon/config/options.h"
#include "toml/toml.h"

namespace kbench::config {

namespace {

constexpr char kSeeAlso[] = "; see docs/configuration.md";

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : "\n") + line;
  return all;
}

// Edits that turn one word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto closest = std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
  return *closest;
}

class Reader {
 public:
  explicit Reader(const std::string& file_name) : file_name_(file_name) {}

  Config read(std::string_view text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";  // of UTF-8; some editors write it
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    toml::table root;
    try {
      root = toml::parse(text);
    } catch (const ParserConfused& e) {
      throw BadConfig({file_name_ + ": " + e.what()});
    } catch (const toml::parse_error& e) {
      fail(e.source(), std::string(e.description()));
      throw bad();
    }
    for (const auto& [name, node] : root) {
      const std::string section(name.str());
      if (const toml::table* table = node.as_table(); table && is_section(section)) {
        read_section(section, *table);
      } else {
        unknown_section(section, node);
      }
    }
    if (!errors_.empty()) throw bad();
    complete(config_);
    if (auto wrong = contradictions(config_); !wrong.empty()) {
      for (std::string& what : wrong) what.insert(0, file_name_ + ": ").append(kSeeAlso);
      throw BadConfig(wrong);
    }
    return config_;
  }

 private:
  static bool is_section(const std::string& name) {
    return std::ranges::any_of(sections(), [&](const Section& s) { return s.name == name; });
  }

  void unknown_section(const std::string& name, const toml::node& node) {
    std::vector<std::string> known;
    for (const Section& s : sections()) known.push_back(s.name);
    if (!node.is_table()) return fail(node.source(), name + ": an option outside of a section" + kSeeAlso);
    fail(node.source(), "[" + name + "]: no such section; did you mean [" + nearest(name, known) + "]?");
  }

  void read_section(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
      std::string key = section;
      key.append(".").append(name.str());
      const auto option = std::ranges::find_if(options(), [&](const Option& o) { return o.key == key; });
      if (option != options().end()) {
        set(*option, node);
      } else {
        std::vector<std::string> known;
        for (const Option& o : options()) known.push_back(o.key);
        fail(name.source(), key + ": no such option; did you mean " + nearest(key, known) + "?");
      }
    }
  }

  void set(const Option& option, const toml::node& node) {
    const auto value = value_of(node);
    if (value && option.set(config_, *value)) return;
    std::ostringstream given;
    node.visit([&](const auto& n) { given << n; });
    fail(node.source(), option.key + ": " + given.str() + " is not " + option.expects + kSeeAlso);
  }

  static std::optional<Value> value_of(const toml::node& node) {
    if (const auto* v = node.as_boolean()) return v->get();
    if (const auto* v = node.as_integer()) return v->get();
    if (const auto* v = node.as_floating_point()) return v->get();
    if (const auto* v = node.as_string()) return v->get();
    const toml::array* array = node.as_array();
    if (!array) return {};
    List list;
    for (const auto& element : *array) {
      const auto* text = element.as_string();
      if (!text) return {};
      list.texts.push_back(text->get());
    }
    return list;
  }

  void fail(const toml::source_region& where, const std::string& what) { errors_.emplace(where.begin.line, what); }

  BadConfig bad() const {
    std::vector<std::string> all;
    for (const auto& [line, what] : errors_) all.push_back(file_name_ + ":" + std::to_string(line) + ": " + what);
    return BadConfig(all);
  }

  const std::string file_name_;
  Config config_;
  std::multimap<std::uint32_t, std::string> errors_;  // by line
};

}  // namespace

BadConfig::BadConfig(std::vector<std::string> all) : std::runtime_error(joined(all)), errors(std::move(all)) {}

Config parse(std::string_view toml, const std::string& file_name) { return Reader(file_name).read(toml); }

Config load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !std::filesystem::is_regular_file(path) || !(text << file.rdbuf() || file.peek() == EOF)) {
    throw BadConfig({path + ": cannot be read"});
  }
  return parse(text.str(), path);
}

}  // namespace kbench::config
