// A Store in one SQLite file.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "daemon/store/migrations.h"
#include "daemon/store/sql_store.h"

namespace kbench::store {

namespace {

constexpr char kCache[] = "pragma cache_size = -65536";  // KiB of pages a connection keeps at most

// Submissions are nobody else's business: the file, and so its -wal and -shm, are the daemon's alone.
void make_private(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw StoreFault("cannot open the store " + path + ": " + std::strerror(errno));
  ::close(fd);
}

constexpr std::chrono::milliseconds kCheckpointPatience{100}, kCheckpointPause{1'000};

void wait_for_locks(Connection& db, std::chrono::milliseconds most) {
  db.text("pragma busy_timeout = " + std::to_string(most.count()));
}

std::unique_ptr<Connection> connect(const std::string& path, const Options& options) {
  auto db = std::make_unique<Connection>("dbname=\"" + path + "\"");
  wait_for_locks(*db, options.busy_timeout);
  if (const auto mode = db->text("pragma journal_mode = wal"); mode != "wal") {
    throw StoreFault("the file system of " + path + " cannot hold a write-ahead log (journal mode stays " + mode + ")");
  }
  db->execute("pragma synchronous = full");
  db->execute("pragma foreign_keys = on");
  db->execute("pragma temp_store = memory");
  db->execute(kCache);
  return db;
}

void apply(Connection& db, const Migration& migration) {
  std::size_t from = 0;
  for (std::size_t end; (end = migration.sql.find(";\n", from)) != std::string::npos; from = end + 2) {
    db.execute(migration.sql.substr(from, end - from));
  }
  db.change("insert into schema_version (version) values (:a)", migration.version);
}

void migrate(Connection& db, const std::string& path) {
  db.change("begin immediate");
  try {
    db.execute("create table if not exists schema_version (version integer primary key not null)");
    int version = 0;
    db.one("select coalesce(max(version), 0) from schema_version", std::tie(version));
    const int known = migrations().back().version;
    if (version > known) {
      throw StoreFault("the store " + path + " has schema " + std::to_string(version) + ", this kbenchd knows up to " +
                       std::to_string(known) + ": use a newer kbenchd");
    }
    for (const Migration& migration : migrations()) {
      if (migration.version > version) apply(db, migration);
    }
    db.change("commit");
  } catch (...) {
    db.change("rollback");
    throw;
  }
}

// Readers that never pause keep SQLite from starting its write-ahead log afresh: it would grow without end. Emptying it
// holds commits up, for no longer than short reads take to go; with one that stays it is tried again later.
class Upkeep {
 public:
  Upkeep(const std::string& path, const Options& options)
      : wal_(path + "-wal"), bytes_max_(options.wal_bytes_max), busy_timeout_(options.busy_timeout) {}

  void operator()(Connection& db) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(wal_, none);
    if (none || bytes <= static_cast<std::uintmax_t>(bytes_max_)) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_try_) return;
    try {
      wait_for_locks(db, kCheckpointPatience);
      db.text("pragma wal_checkpoint(truncate)");
    } catch (const StoreFault&) {
      // What is in the log is durable.
    }
    wait_for_locks(db, busy_timeout_);
    if (std::filesystem::file_size(wal_, none) > 0) next_try_ = now + kCheckpointPause;
  }

 private:
  const std::string wal_;
  const std::int64_t bytes_max_;
  const std::chrono::milliseconds busy_timeout_;
  std::chrono::steady_clock::time_point next_try_;
};

}  // namespace

std::unique_ptr<Store> open_sqlite(const std::string& path, const Options& options) {
  if (path.find('"') != std::string::npos) throw StoreFault("a store's path cannot contain a quotation mark: " + path);
  make_private(path);
  auto writer = connect(path, options);
  migrate(*writer, path);
  const auto several = [&](int count) {
    SqlStore::Connections all;
    for (int i = 0; i < std::max(1, count); ++i) all.push_back(connect(path, options));
    return all;
  };
  return std::make_unique<SqlStore>(std::move(writer), several(options.readers), several(options.list_readers), options,
                                    Upkeep(path, options));
}

}  // namespace kbench::store
