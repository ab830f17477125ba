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
#include <system_error>

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

void WorkFolder::clear() {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (!entry.is_directory()) continue;
    const std::lock_guard lock(mutex_);  // held while removing: nobody makes one of that name meanwhile
    std::error_code ignored;             // what resists is tried again next time
    if (!names_.contains(entry.path().filename())) fs::remove_all(entry.path(), ignored);
  }
}

WorkFolder::Scratch::Scratch(WorkFolder& parent, const std::string& name)
    : parent_(parent), name_(name), path_(parent.path_ + "/" + name) {
  const std::lock_guard lock(parent_.mutex_);
  fs::remove_all(path_);
  if (::mkdir(path_.c_str(), 0700) != 0) throw std::system_error(errno, std::generic_category(), path_);
  parent_.names_.insert(name_);
}

WorkFolder::Scratch::~Scratch() {
  std::error_code ignored;  // what is left is found by clear
  fs::remove_all(path_, ignored);
  const std::lock_guard lock(parent_.mutex_);
  parent_.names_.erase(name_);
}

std::string WorkFolder::Scratch::add(const std::string& leaf, unsigned mode) const {
  std::string path = path_ + "/" + leaf;
  if (::mkdir(path.c_str(), 0700) != 0 || ::chmod(path.c_str(), mode) != 0)
    throw std::system_error(errno, std::generic_category(), path);
  return path;
}

}  // namespace kbench::grader
