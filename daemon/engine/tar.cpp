#include "daemon/engine/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

namespace kbench::engine {

namespace {

struct WriteFree {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct EntryFree {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

void check_path(const std::string& path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string::npos)
    throw BadTar("bad path '" + path + "'");
  std::size_t begin = 0;
  while (begin <= path.size()) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part(path.data() + begin, end - begin);
    if (part.empty() || part == "." || part == "..") throw BadTar("bad path '" + path + "'");
    begin = end + 1;
  }
}

void require(archive* writer, int result, const std::string& path) {
  // A warning would mean that the header was altered to fit; the archive must be exact.
  if (result != ARCHIVE_OK) {
    const char* why = archive_error_string(writer);
    throw BadTar("'" + path + "': " + (why ? why : "cannot be archived"));
  }
}

la_ssize_t append(archive*, void* to, const void* bytes, std::size_t count) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
  return static_cast<la_ssize_t>(count);
}

void check_limits(const std::vector<TarEntry>& entries, const TarLimits& limits) {
  if (entries.size() > limits.files_max) throw BadTar("more than " + std::to_string(limits.files_max) + " files");
  std::size_t bytes = 0;
  for (const TarEntry& entry : entries) bytes += entry.content.size();
  if (bytes > limits.bytes_max) throw BadTar("more than " + std::to_string(limits.bytes_max) + " bytes");
}

}  // namespace

std::string write_tar(std::vector<TarEntry> entries, const TarLimits& limits) {
  check_limits(entries, limits);
  for (const TarEntry& entry : entries) check_path(entry.path);
  std::sort(entries.begin(), entries.end(), [](const TarEntry& a, const TarEntry& b) { return a.path < b.path; });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].path == entries[i - 1].path) throw BadTar("'" + entries[i].path + "' is there twice");

  std::string out;
  std::unique_ptr<archive, WriteFree> writer(archive_write_new());
  require(writer.get(), archive_write_set_format_ustar(writer.get()), "archive");
  require(writer.get(), archive_write_open(writer.get(), &out, nullptr, append, nullptr), "archive");
  for (const TarEntry& entry : entries) {
    std::unique_ptr<archive_entry, EntryFree> header(archive_entry_new());
    archive_entry_set_pathname(header.get(), entry.path.c_str());
    archive_entry_set_filetype(header.get(), AE_IFREG);
    archive_entry_set_perm(header.get(), entry.executable ? 0755 : 0644);
    archive_entry_set_size(header.get(), static_cast<la_int64_t>(entry.content.size()));
    archive_entry_set_mtime(header.get(), 0, 0);
    archive_entry_set_uid(header.get(), 0);
    archive_entry_set_gid(header.get(), 0);
    require(writer.get(), archive_write_header(writer.get(), header.get()), entry.path);
    if (archive_write_data(writer.get(), entry.content.data(), entry.content.size()) !=
        static_cast<la_ssize_t>(entry.content.size()))
      require(writer.get(), ARCHIVE_FATAL, entry.path);
  }
  require(writer.get(), archive_write_close(writer.get()), "archive");
  return out;
}

std::vector<TarEntry> read_folder(const std::string& folder, const TarLimits& limits) {
  namespace fs = std::filesystem;
  std::vector<TarEntry> entries;
  std::size_t bytes = 0;
  try {
    for (const fs::directory_entry& item : fs::recursive_directory_iterator(folder)) {
      const fs::file_status status = item.symlink_status();
      if (fs::is_directory(status)) continue;
      const std::string path = item.path().lexically_relative(folder).generic_string();
      if (!fs::is_regular_file(status)) throw BadTar("'" + path + "' is no regular file");
      bytes += item.file_size();
      if (bytes > limits.bytes_max) throw BadTar("more than " + std::to_string(limits.bytes_max) + " bytes");
      if (entries.size() == limits.files_max) throw BadTar("more than " + std::to_string(limits.files_max) + " files");
      std::ifstream file(item.path(), std::ios::binary);
      std::string content{std::istreambuf_iterator<char>(file), {}};
      if (!file) throw BadTar("'" + path + "' cannot be read");
      const bool executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
      entries.push_back({path, std::move(content), executable});
    }
  } catch (const fs::filesystem_error& error) {
    throw BadTar(error.what());
  }
  return entries;
}

}  // namespace kbench::engine
