// A generated folder on disk: exactly its files, nothing else.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "generator/generator.h"

namespace kbench::generator {

namespace fs = std::filesystem;
namespace {

// What differed or, where it was put right, what was done; or nothing.
std::string write_file(const fs::path& path, const std::string& text, bool check) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream now;
  if (file) now << file.rdbuf();
  if (file && now.str() == text) return {};
  if (!check) {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) throw std::runtime_error(path.string() + ": cannot be written");
    fs::permissions(path, path.extension() == ".sh" ? fs::perms(0755) : fs::perms(0644));
  }
  if (!check) return path.string() + (file ? ": changed" : ": new");
  return path.string() + (file ? ": differs" : ": is missing");
}

}  // namespace

std::vector<std::string> write(const std::string& folder, const std::map<std::string, std::string>& files, bool check) {
  std::vector<std::string> differs, strangers;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_directory() && !files.contains(entry.path().lexically_relative(folder).string()))
        strangers.push_back(entry.path().string());
  }
  std::sort(strangers.begin(), strangers.end());
  for (const std::string& path : strangers) {
    differs.push_back(path + (check ? ": is not generated" : ": removed, it is not generated"));
    if (!check) fs::remove(path);
  }
  for (const auto& [name, text] : files)
    if (const std::string fault = write_file(fs::path(folder) / name, text, check); !fault.empty())
      differs.push_back(fault);
  return differs;
}

std::vector<std::string> write_rest(const std::string& root, const std::vector<Definition>& all, bool check) {
  const fs::path tasks = fs::path(root) / "tasks";
  std::vector<std::string> differs;
  std::vector<fs::path> strangers;
  if (fs::is_directory(tasks)) {
    for (const auto& family : fs::directory_iterator(tasks)) {
      if (!family.is_directory()) continue;
      for (const auto& task : fs::directory_iterator(family.path())) {
        const std::string id = task.path().lexically_relative(tasks).string();
        if (std::none_of(all.begin(), all.end(), [&](const Definition& d) { return d.id() == id; }))
          strangers.push_back(task.path());
      }
    }
  }
  std::sort(strangers.begin(), strangers.end());
  for (const fs::path& path : strangers) {
    differs.push_back(path.string() +
                      (check ? ": is of no task in catalog/" : ": removed, it is of no task in catalog/"));
    if (!check) fs::remove_all(path);
  }
  if (const std::string fault = write_file(tasks / "CATALOG.json", catalog_json(root, all), check); !fault.empty())
    differs.push_back(fault);
  return differs;
}

}  // namespace kbench::generator
