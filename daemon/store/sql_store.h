// The Store over SQL: reads on a few connections, writes through the Writer.
#pragma once

#include "daemon/store/ids.h"
#include "daemon/store/writer.h"

namespace kbench::store {

class Readers {
 public:
  explicit Readers(std::vector<std::unique_ptr<Connection>> connections) : free_(std::move(connections)) {}

  // Waits for a free connection; who came first gets the first.
  template <class F>
  auto use(F&& f) {
    Loan loan(*this);
    return f(*loan.connection);
  }

 private:
  struct Loan {
    Readers& readers;
    std::unique_ptr<Connection> connection;
    explicit Loan(Readers& r);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
  };
  // Lives where its caller waits.
  struct Waiting {
    std::condition_variable served = {};
    std::unique_ptr<Connection> connection = {};
  };
  std::mutex mutex_;
  std::deque<Waiting*> queue_;  // empty while a connection is free
  std::vector<std::unique_ptr<Connection>> free_;
};

class SqlStore : public Store {
 public:
  using Connections = std::vector<std::unique_ptr<Connection>>;
  SqlStore(std::unique_ptr<Connection> writer, Connections readers, Connections list_readers, const Options& options,
           Writer::Tend tend);

  SubmitResult submit(const NewSubmission& submission, std::int64_t queue_max) override;
  std::optional<Submission> get(const std::string& id) override;
  Page list(const ListFilter& filter) override;
  std::vector<File> files(const std::string& id) override;
  std::optional<std::string> details(const std::string& id) override;
  std::optional<std::string> log(const std::string& id) override;
  std::vector<Event> events(const std::string& id, std::int64_t after, int limit) override;
  Cancelled cancel(const std::string& id) override;
  Counts counts() override;

  std::optional<Lease> claim(const Wanted& wanted) override;
  Renewed renew(const std::string& id, int attempt, std::chrono::milliseconds lease) override;
  bool set_state(const std::string& id, int attempt, State state) override;
  bool append_event(const std::string& id, int attempt, std::int64_t attempt_seq, const std::string& type,
                    const std::string& json) override;
  bool finish(const std::string& id, int attempt, const Outcome& outcome, int attempts_max) override;
  int expire_leases(int attempts_max) override;
  std::vector<Lease> leases_of(const std::string& grader) override;
  bool release(const std::string& id, int attempt) override;

  void on_change(std::function<void(const std::string& id)> callback) override;
  void on_claimable(std::function<void()> callback) override;

 private:
  // The value that `f` returned in the transaction that was committed.
  template <class F>
  auto write(F f) {
    std::optional<std::invoke_result_t<F, Transaction&>> result;
    writer_.run([&](Transaction& t) { result = f(t); });
    return std::move(result).value();  // NOLINT(bugprone-unchecked-optional-access): run() throws when `f` did not end
  }
  std::optional<std::string> result_column(const std::string& column, const std::string& id);
  void announce(const std::vector<std::string>& changed, bool claimable);

  const Options options_;
  const Writer::Clocks clocks_;
  Ids ids_;
  std::mutex callbacks_mutex_;
  std::vector<std::function<void(const std::string&)>> on_change_;
  std::vector<std::function<void()>> on_claimable_;
  Readers readers_;
  Readers list_readers_;  // of their own: a list takes a thousand times as long as any other read
  Writer writer_;         // last: its thread uses the rest
};

}  // namespace kbench::store
