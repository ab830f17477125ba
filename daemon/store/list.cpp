// Lists of submissions, newest first, by any filters, in bounded work however many there are and however few match.
//
// A list walks down one index, its driver, and tries the other filters on what it meets. It goes by windows: of all
// indices that the filters allow, the one whose next rows reach furthest back drives through them, for it leaves out
// most. Whoever looked at list_rows_max without filling the page hands out what was found, and where to go on.
#include <algorithm>

#include "daemon/store/sql_store.h"
#include "daemon/store/transitions.h"

namespace kbench::store {

namespace {

constexpr int kPageMax = 500;
constexpr int kGrowth = 4;  // of a window over the one before: little is looked at in vain where much matches

// One read view for several statements.
class Snapshot {
 public:
  explicit Snapshot(Connection& db) : db_(db) { db_.change("begin"); }
  ~Snapshot() {
    try {
      db_.change("rollback");
    } catch (const StoreFault&) {
      // The database did it itself.
    }
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Connection& db_;
};

// Takes its values, a bound above and a limit; gives ids as `at`, in falling order, from an index alone.
struct Driver {
  std::string sql;
  std::vector<std::string> values;
};

struct Query {
  std::string where;
  std::vector<std::string> values;
  std::vector<Driver> drivers;
};

Query query_of(const ListFilter& f) {
  Query query{"1 = 1", {}, {}};
  const auto filter = [&](const std::string& column, const std::string& value, const std::string& indexed) {
    if (value.empty()) return;
    query.where += " and " + column + " = :" + column;
    query.values.push_back(value);
    if (indexed.empty()) return;
    query.drivers.push_back(
        {"select id as at from submissions where " + indexed + " and id < :y order by id desc limit :z", {value}});
  };
  filter("task", f.task, "task = :x");
  filter("submitter", f.submitter, "submitter = :x");
  filter("device", f.device, "");  // too few devices for an index to help
  filter("verdict", f.verdict, "verdict = :x and verdict <> ''");
  filter("state", f.state ? name_of(*f.state) : "", "state = :x");
  if (!f.label_key.empty()) {
    query.where += " and exists (select 1 from labels where submission = id and name = :name and value = :value)";
    query.values.insert(query.values.end(), {f.label_key, f.label_value});
    query.drivers.push_back(
        {"select submission as at from labels where name = :w and value = :x and submission < :y order by submission "
         "desc limit :z",
         {f.label_key, f.label_value}});
  }
  if (query.drivers.empty())
    query.drivers.push_back({"select id as at from submissions where id < :y order by id desc limit :z", {}});
  return query;
}

struct Window {
  const Driver* driver;
  int rows = 0;
  std::string lowest = {};  // of its ids
};

Window window_of(Connection& db, const Driver& driver, const std::string& below, int rows_max) {
  Window window{&driver};
  db.one("select count(*), coalesce(min(at), '') from (" + driver.sql + ") walked",
         std::tie(window.rows, window.lowest), driver.values, below, rows_max);
  return window;
}

Window widest(Connection& db, const Query& query, const std::string& below, int rows_max) {
  Window best{nullptr};
  for (const Driver& driver : query.drivers) {
    Window window = window_of(db, driver, below, rows_max);
    if (window.rows < rows_max) return window;  // reaches the end
    if (!best.driver || window.lowest < best.lowest) best = std::move(window);
  }
  return best;
}

}  // namespace

Page SqlStore::list(const ListFilter& f) {
  if (!f.cursor.empty() && !is_id(f.cursor))
    throw BadCursor("not a cursor of a list of submissions: " + f.cursor.substr(0, 40));
  const Query query = query_of(f);
  const auto wanted = static_cast<std::size_t>(std::clamp(f.limit, 1, kPageMax));
  return list_readers_.use([&](Connection& db) {
    const Snapshot snapshot(db);
    Page page;
    std::string below = f.cursor.empty() ? "t" : f.cursor;  // "t" is greater than any "s-..."
    int left = std::max(options_.list_rows_max, 1);
    for (int rows = static_cast<int>(wanted) + 1; page.next.empty() && rows > 0; rows *= kGrowth) {
      rows = std::min(rows, left);
      left -= rows;
      const Window window = widest(db, query, below, rows);
      const int more = static_cast<int>(wanted + 1 - page.submissions.size());
      SubmissionOut out;
      db.each(
          "select " + std::string(kSubmissionColumns) + " from (" + window.driver->sql +
              ") walked cross join submissions where id = at and " + query.where +
              " order by id desc limit :limit",  // SQLite keeps to the order of a cross join
          out.columns(), [&] { page.submissions.push_back(out.take()); }, window.driver->values, below, rows,
          query.values, more);
      if (page.submissions.size() > wanted) {
        page.submissions.pop_back();
        page.next = page.submissions.back().id;
      } else if (window.rows < rows) {
        break;
      } else if (left == 0) {
        page.next = window.lowest;
      }
      below = window.lowest;
    }
    for (Submission& s : page.submissions) read_labels(db, s);
    return page;
  });
}

}  // namespace kbench::store
