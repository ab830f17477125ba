// The configuration as text: what is in force, and what there is to set.
#include "daemon/config/options.h"

namespace kbench::config {

namespace {

std::string section_of(const Option& option) { return option.key.substr(0, option.key.find('.')); }
std::string name_of(const Option& option) { return option.key.substr(option.key.find('.') + 1); }

}  // namespace

std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string effective(const Config& config) {
  std::string out;
  for (const Section& section : sections()) {
    out += (out.empty() ? "[" : "\n[") + section.name + "]\n";
    for (const Option& option : options()) {
      if (section_of(option) == section.name) out += name_of(option) + " = " + option.show(config) + "\n";
    }
  }
  return out;
}

std::string reference() {
  const Config defaults;
  std::string out =
      "# Configuration\n"
      "\n"
      "`kbenchd --config FILE` reads a TOML file. Every option has a default; a file needs only what differs:\n"
      "\n"
      "```toml\n"
      "[server]\n"
      "port = 8701\n"
      "[http]\n"
      "body_bytes_max = \"4 MiB\"\n"
      "request_timeout = \"10 s\"\n"
      "```\n"
      "\n"
      "Sizes are texts with a unit (`B`, `KiB`, `MiB`, `GiB`, `TiB`, or `kB`, `MB`, `GB`, `TB`) or a number of bytes; "
      "times are texts with a unit\n"
      "(`ms`, `s`, `min`, `h`, `d`). An unknown option or a value out of range stops kbenchd, which then names every "
      "such error, its line and\n"
      "what was expected. `kbenchd config` prints the configuration in force, `kbenchd config --reference` this "
      "page.\n";
  for (const Section& section : sections()) {
    out += "\n## [" + section.name + "]\n\n" + section.doc +
           "\n\n| option | default | expected | meaning |\n|---|---|---|---|\n";
    for (const Option& option : options()) {
      if (section_of(option) != section.name) continue;
      const std::string shown = option.show(defaults);
      out += "| `" + name_of(option) + "` | " + (shown == "\"\"" ? "" : "`" + shown + "`") + " | " + option.expects +
             " | " + option.doc + " |\n";
    }
  }
  return out;
}

}  // namespace kbench::config
