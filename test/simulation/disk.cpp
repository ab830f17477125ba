#include "test/simulation/disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "test/simulation/census.h"
#include "test/simulation/fibers.h"

namespace kbench::sim {

struct Disk::File {
  std::string bytes;
  // Of the program that has it open; gone with it.
  int shared = 0;                                      // holders of a shared lock
  const void *reserved = nullptr, *pending = nullptr;  // holders of the next ones
  std::vector<std::unique_ptr<std::string>> shm;
  struct ShmLock {
    int shared = 0;
    bool exclusive = false;
  } shm_locks[SQLITE_SHM_NLOCK];
};

Disk* Disk::current = nullptr;

void Disk::forget_program() {
  for (auto& [name, file] : files) {
    auto kept = std::make_shared<File>();  // a new one: what the dead program still points at is not this
    kept->bytes = file->bytes;
    file = std::move(kept);
  }
}

void Disk::copy_from(const Disk& other) {
  files.clear();
  for (const auto& [name, file] : other.files) {
    files[name] = std::make_shared<File>();
    files[name]->bytes = file->bytes;
  }
}

std::int64_t Disk::size(const std::string& name) const {
  const auto found = files.find(name);
  return found == files.end() ? -1 : static_cast<std::int64_t>(found->second->bytes.size());
}

namespace {

struct Handle {
  sqlite3_file base;
  std::shared_ptr<Disk::File> file;
  std::string name;
  int level = SQLITE_LOCK_NONE;
  bool deleted_at_close = false;
};
Handle& of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }

constexpr double kSeldom = 10;  // a call's that SQLite seldom makes

// Every call is a place to lose the turn, or to fail.
int trouble(const char* where, int error, const char* what = "error", double weight = 1) {
  perhaps_yield();
  return strikes(where, what, Disk::current->faults * weight) ? error : SQLITE_OK;
}

int close_file(sqlite3_file* file) {
  Handle& handle = of(file);
  if (handle.deleted_at_close) Disk::current->files.erase(handle.name);
  handle.~Handle();
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  if (const int error = trouble("store-read", SQLITE_IOERR_READ)) return error;
  const std::string& bytes = of(file).file->bytes;
  const auto from = std::min(static_cast<std::size_t>(offset), bytes.size());
  const auto have = std::min(static_cast<std::size_t>(amount), bytes.size() - from);
  std::memcpy(out, bytes.data() + from, have);
  if (have == static_cast<std::size_t>(amount)) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + have, 0, static_cast<std::size_t>(amount) - have);
  return SQLITE_IOERR_SHORT_READ;
}

void put(Disk::File& file, const char* data, std::size_t amount, std::size_t offset) {
  if (file.bytes.size() < offset + amount) file.bytes.resize(offset + amount);
  std::memcpy(file.bytes.data() + offset, data, amount);
}

int write_file(sqlite3_file* file, const void* data, int amount, sqlite3_int64 offset) {
  if (const int error = trouble("store-write", SQLITE_IOERR_WRITE)) return error;
  if (const int error = trouble("store-write", SQLITE_FULL, "full")) return error;
  const auto all = static_cast<std::size_t>(amount), at = static_cast<std::size_t>(offset);
  const auto* bytes = static_cast<const char*>(data);
  std::size_t done = 0;
  if (strikes("store-write", "cut", 1.0 / 16)) {
    done = chance().below(all);
    put(*of(file).file, bytes, done, at);
    perhaps_yield();
  }
  put(*of(file).file, bytes + done, all - done, at + done);
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (const int error = trouble("store-truncate", SQLITE_IOERR_TRUNCATE, "error", kSeldom)) return error;
  of(file).file->bytes.resize(static_cast<std::size_t>(size));
  return SQLITE_OK;
}
int sync_file(sqlite3_file*, int) { return trouble("store-sync", SQLITE_IOERR_FSYNC); }
int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  if (const int error = trouble("store-size", SQLITE_IOERR_FSTAT)) return error;
  *size = static_cast<sqlite3_int64>(of(file).file->bytes.size());
  return SQLITE_OK;
}

int lock_file(sqlite3_file* file, int level) {
  if (const int error = trouble("store-lock", SQLITE_IOERR_LOCK)) return error;
  Handle& handle = of(file);
  Disk::File& f = *handle.file;
  if (handle.level >= level) return SQLITE_OK;
  if (handle.level == SQLITE_LOCK_NONE) {
    if (f.pending) return SQLITE_BUSY;
    ++f.shared;
    handle.level = SQLITE_LOCK_SHARED;
  }
  if (level >= SQLITE_LOCK_RESERVED && handle.level < SQLITE_LOCK_RESERVED) {
    if (f.reserved && f.reserved != &handle) return SQLITE_BUSY;
    f.reserved = &handle;
    handle.level = SQLITE_LOCK_RESERVED;
  }
  if (level == SQLITE_LOCK_EXCLUSIVE) {
    f.pending = &handle;
    if (f.shared > 1) return SQLITE_BUSY;
    handle.level = SQLITE_LOCK_EXCLUSIVE;
  }
  return SQLITE_OK;
}
int unlock_file(sqlite3_file* file, int level) {
  Handle& handle = of(file);
  Disk::File& f = *handle.file;
  if (f.pending == &handle) f.pending = nullptr;
  if (f.reserved == &handle) f.reserved = nullptr;
  if (level == SQLITE_LOCK_NONE && handle.level > SQLITE_LOCK_NONE) --f.shared;
  handle.level = std::min(handle.level, level);
  return SQLITE_OK;
}
int is_reserved(sqlite3_file* file, int* out) {
  *out = of(file).file->reserved != nullptr;
  return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
  auto& shm = of(file).file->shm;
  const auto at = static_cast<std::size_t>(region);
  *out = nullptr;
  if (const int error = trouble("store-shm-map", SQLITE_IOERR_SHMMAP)) return error;
  if (at >= shm.size() && !extend) return SQLITE_OK;
  while (shm.size() <= at) shm.push_back(std::make_unique<std::string>(static_cast<std::size_t>(size), '\0'));
  *out = shm[at]->data();
  return SQLITE_OK;
}
int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  auto* locks = of(file).file->shm_locks + offset;
  if (flags & SQLITE_SHM_UNLOCK) {
    for (int i = 0; i < n; ++i) {
      if (flags & SQLITE_SHM_EXCLUSIVE)
        locks[i].exclusive = false;
      else if (locks[i].shared > 0)
        --locks[i].shared;
    }
    return SQLITE_OK;
  }
  perhaps_yield();
  for (int i = 0; i < n; ++i)
    if (locks[i].exclusive || ((flags & SQLITE_SHM_EXCLUSIVE) && locks[i].shared > 0)) return SQLITE_BUSY;
  for (int i = 0; i < n; ++i) {
    if (flags & SQLITE_SHM_EXCLUSIVE)
      locks[i].exclusive = true;
    else
      ++locks[i].shared;
  }
  return SQLITE_OK;
}
void shm_barrier(sqlite3_file*) {}
int shm_unmap(sqlite3_file* file, int deleted) {
  if (deleted) of(file).file->shm.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {2,           close_file,   read_file,       write_file,  truncate_file,
                                     sync_file,   size_of_file, lock_file,       unlock_file, is_reserved,
                                     control,     sector_size,  characteristics, shm_map,     shm_lock,
                                     shm_barrier, shm_unmap,    nullptr,         nullptr};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (const int error = trouble("store-open", SQLITE_CANTOPEN)) return error;
  static int unnamed = 0;
  const std::string key = name ? name : "temporary-" + std::to_string(++unnamed);
  std::shared_ptr<Disk::File>& entry = Disk::current->files[key];
  if (!entry) entry = std::make_shared<Disk::File>();
  auto* handle = new (file) Handle{{&kMethods}, entry, key};
  handle->deleted_at_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  if (out_flags) *out_flags = flags;
  return SQLITE_OK;
}
int delete_file(sqlite3_vfs*, const char* name, int) {
  if (const int error = trouble("store-delete", SQLITE_IOERR_DELETE, "error", kSeldom)) return error;
  return Disk::current->files.erase(name) ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}
int access_file(sqlite3_vfs*, const char* name, int, int* out) {
  if (const int error = trouble("store-access", SQLITE_IOERR_ACCESS)) return error;
  *out = Disk::current->files.contains(name);
  return SQLITE_OK;
}
int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  std::snprintf(out, static_cast<std::size_t>(size), "%s", name);
  return SQLITE_OK;
}
int random_bytes(sqlite3_vfs*, int size, char* out) {
  for (int i = 0; i < size; ++i) out[i] = static_cast<char>(i + 1);
  return size;
}
int sleep_us(sqlite3_vfs*, int us) {
  sleep_ms(std::max(us / 1000, 1));
  return us;
}
int current_time(sqlite3_vfs*, double* days) {
  *days = 2440587.5 + static_cast<double>(wall_ms()) / 86'400'000.0;
  return SQLITE_OK;
}
int last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

void Disk::install() {
  static sqlite3_vfs vfs{1,         sizeof(Handle), 512,          nullptr,   "simulation", nullptr,
                         open_file, delete_file,    access_file,  full_path, nullptr,      nullptr,
                         nullptr,   nullptr,        random_bytes, sleep_us,  current_time, last_error,
                         nullptr,   nullptr,        nullptr,      nullptr};
  if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK || sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
    throw Failed("SQLite does not take the simulated disk");
}

}  // namespace kbench::sim
