#include "daemon/store/sql_store.h"

#include <utility>

namespace kbench::store {

namespace {

struct StateName {
  State state;
  const char* name;
};
constexpr StateName kStateNames[] = {{State::queued, "queued"}, {State::preparing, "preparing"},
                                     {State::ready, "ready"},   {State::measuring, "measuring"},
                                     {State::done, "done"},     {State::cancelled, "cancelled"},
                                     {State::failed, "failed"}};

Millis system_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Writer::Clocks clocks_of(const Options& options) {
  Writer::Clocks clocks{options.now ? options.now : system_now, options.steady};
  if (clocks.steady) return clocks;
  using Steady = std::chrono::steady_clock;
  clocks.steady = [at_open = clocks.now(), opened = Steady::now()] {
    return at_open + std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - opened).count();
  };
  return clocks;
}

}  // namespace

const char* name_of(State state) { return kStateNames[static_cast<std::size_t>(state)].name; }

std::optional<State> state_named(const std::string& name) {
  for (const auto& known : kStateNames) {
    if (name == known.name) return known.state;
  }
  return {};
}

Readers::Loan::Loan(Readers& r) : readers(r) {
  std::unique_lock lock(readers.mutex_);
  if (!readers.free_.empty()) {
    connection = std::move(readers.free_.back());
    readers.free_.pop_back();
    return;
  }
  Waiting waiting;
  readers.queue_.push_back(&waiting);
  waiting.served.wait(lock, [&] { return waiting.connection != nullptr; });
  connection = std::move(waiting.connection);
}

Readers::Loan::~Loan() {
  const std::lock_guard lock(readers.mutex_);
  if (readers.queue_.empty()) {
    readers.free_.push_back(std::move(connection));
    return;
  }
  Waiting& first = *readers.queue_.front();
  readers.queue_.pop_front();
  first.connection = std::move(connection);
  first.served.notify_one();  // under the lock: it is gone as soon as it sees its connection
}

SqlStore::SqlStore(std::unique_ptr<Connection> writer, Connections readers, Connections list_readers,
                   const Options& options, Writer::Tend tend)
    : options_(options),
      clocks_(clocks_of(options)),
      readers_(std::move(readers)),
      list_readers_(std::move(list_readers)),
      writer_(
          std::move(writer), options.group_size_max, clocks_,
          [this](const std::vector<std::string>& changed, bool claimable) { announce(changed, claimable); },
          std::move(tend)) {
  write([&](Transaction& t) {
    // A clock that was set back between two lives would make retries wait by as much.
    const Millis latest = t.steady + options_.retry_delay_max.count();
    t.db.change("update submissions set not_before = :a where not_before > :b", latest, latest);
    // And it would make new submissions older than those there are.
    std::string newest;
    t.db.one("select coalesce(max(id), '') from submissions", std::tie(newest));
    if (is_id(newest)) ids_.follow(newest);
    return true;
  });
}

void SqlStore::on_change(std::function<void(const std::string& id)> callback) {
  const std::lock_guard lock(callbacks_mutex_);
  on_change_.push_back(std::move(callback));
}

void SqlStore::on_claimable(std::function<void()> callback) {
  const std::lock_guard lock(callbacks_mutex_);
  on_claimable_.push_back(std::move(callback));
}

void SqlStore::announce(const std::vector<std::string>& changed, bool claimable) {
  const std::lock_guard lock(callbacks_mutex_);
  for (const auto& callback : on_change_) {
    for (const std::string& id : changed) callback(id);
  }
  if (!claimable) return;
  for (const auto& callback : on_claimable_) callback();
}

}  // namespace kbench::store
