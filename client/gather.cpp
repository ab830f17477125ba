#include <kbench/sources.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/client.h"

namespace kbench::client {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kFilesMax = 1'000;  // the server's limit is lower; this one keeps us from reading a whole disk
constexpr std::uintmax_t kFileBytesMax = 16 << 20;

std::string content_of(const fs::path& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) throw UsageError(path.string() + ": " + ec.message());
  if (size > kFileBytesMax) throw UsageError(path.string() + ": larger than any submission may be");
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) throw UsageError(path.string() + ": " + std::strerror(errno));
  return text;
}

bool utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0U) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

void add(std::map<std::string, std::string>& files, const std::string& name, const fs::path& path) {
  auto content = content_of(path);
  if (!utf8(content)) throw UsageError(path.string() + ": not UTF-8 text");
  if (!files.emplace(name, std::move(content)).second) {
    throw UsageError(path.string() + ": a second file of the name " + name +
                     "; give the folder that holds both instead");
  }
  if (files.size() > kFilesMax) throw UsageError("more than " + std::to_string(kFilesMax) + " files");
}

void add_folder(std::map<std::string, std::string>& files, const fs::path& folder) {
  std::vector<fs::path> found;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    const bool hidden = name.starts_with('.') || name == sources::kSkippedFolder;
    if (hidden && it->is_directory()) it.disable_recursion_pending();
    // What it names may lie outside the folder, and be somebody's key: an agent's folder must not choose what is sent.
    if (!hidden && it->is_symlink()) throw UsageError(it->path().string() + ": a link; put the file itself there");
    if (!hidden && it->is_regular_file()) found.push_back(it->path());
  }
  for (const auto& path : found) add(files, path.lexically_relative(folder).generic_string(), path);
}

}  // namespace

std::map<std::string, std::string> gathered(const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> files;
  for (const auto& argument : arguments) {
    const fs::path path(argument);
    std::error_code ec;
    const auto kind = fs::status(path, ec).type();
    try {
      if (kind == fs::file_type::directory) {
        add_folder(files, path);
      } else if (kind == fs::file_type::regular) {
        add(files, path.filename().string(), path);
      } else {
        throw UsageError(argument +
                         (kind == fs::file_type::not_found ? ": no such file" : ": neither a file nor a folder"));
      }
    } catch (const fs::filesystem_error& e) {
      throw UsageError(argument + ": " + e.code().message());
    }
  }
  if (files.empty()) throw UsageError("no file to submit");
  return files;
}

}  // namespace kbench::client
