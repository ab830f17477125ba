#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "verifier/report/report.h"

namespace kbench::report {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

void write_all(int fd, const std::string& text, const std::string& path) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail("cannot write " + path);
    done += static_cast<std::size_t>(wrote);
  }
}

// The folder may have been an agent's: whatever lies at either name is removed, never followed or written through.
void write_file(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name, temporary = folder + "/." + name + ".tmp";
  std::error_code ignored;
  std::filesystem::remove_all(temporary, ignored);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) fail("cannot create " + temporary);
  try {
    write_all(fd, text, temporary);
    if (::fsync(fd) != 0) fail("cannot flush " + temporary);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored)))
    std::filesystem::remove_all(path, ignored);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot rename to " + path);
}

std::string dump(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void write_reward(const std::string& out_folder, double reward) {
  if (!std::isfinite(reward) || reward < 0) throw std::invalid_argument("a reward must be finite and not negative");
  write_file(out_folder, "reward.json", dump({{"reward", reward}}, -1));
}

void write_details(const std::string& out_folder, const nlohmann::json& details) {
  write_file(out_folder, "details.json", dump(details, 1));
}

void write_infra_error(const std::string& out_folder, const std::string& cause, const std::string& message) {
  write_file(out_folder, "infra_error.json", dump({{"cause", cause}, {"message", message}}, 1));
}

void remove_results(const std::string& out_folder) {
  for (const char* name : {"reward.json", "reward.txt", "details.json", "infra_error.json", "events.ndjson"}) {
    std::error_code error;
    std::filesystem::remove_all(out_folder + "/" + name, error);  // does not follow symlinks
    if (error) throw std::system_error(error, "cannot remove " + out_folder + "/" + name);
  }
}

}  // namespace kbench::report
