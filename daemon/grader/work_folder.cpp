#include "daemon/grader/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

namespace kbench::grader {

namespace fs = std::filesystem;

namespace {

constexpr char kLockFile[] = "/lock", kOwnerFile[] = "/owner";
constexpr std::size_t kOwnerDigits = 16;

}  // namespace

WorkFolder::WorkFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || ::chmod(path_.c_str(), 0700) != 0)
    throw std::runtime_error("the work folder " + path_ +
                             " cannot be made: " + std::strerror(error ? error.value() : errno));
  lock_ = ::open((path_ + kLockFile).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  if (lock_ >= 0) ::close(lock_);
  throw std::runtime_error("another kbenchd grades in " + path_ + ": give this one a work folder of its own");
}

WorkFolder::~WorkFolder() { ::close(lock_); }

std::string WorkFolder::owner() const {
  const std::string path = path_ + kOwnerFile;
  std::string owner;
  if (std::ifstream(path) >> owner && owner.size() == kOwnerDigits) return owner;
  owner.clear();
  std::random_device random;
  while (owner.size() < kOwnerDigits) owner += "0123456789abcdef"[random() % 16];
  std::ofstream file(path, std::ios::trunc);
  file << owner << std::flush;
  if (!file) throw std::runtime_error(path + " cannot be written");
  return owner;
}

void WorkFolder::clear() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_))
    if (entry.is_directory()) fs::remove_all(entry.path());
}

}  // namespace kbench::grader
