// How fast the queue is, and whether it stays so when it is long: durable submits, status reads, claims, and whole
// gradings without work in them, with 10^3 to 10^6 submissions waiting. Run by scripts/bench/queue.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "daemon/queue/queue.h"

using namespace kbench;
using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

namespace {

constexpr int kSubmitThreads = 16;  // as many as kbenchd handles requests at a time
constexpr int kSubmitsMeasured = 20'000;
constexpr int kReadThreads = 4;
constexpr auto kReadTime = 2s;
constexpr int kClaims = 500;
constexpr int kSlots = 8;
constexpr int kGradings = 2'000;
constexpr int kSubmitters = 500;

double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

void in_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (auto& t : threads) t.join();
}

store::NewSubmission submission(int number) {
  store::NewSubmission s;
  s.task = "scan/segmented-exclusive-scan";
  s.task_hash = std::string(64, 'a');
  s.device = "cpu";
  s.language = "cpp";
  s.submitter = "submitter-" + std::to_string(number % kSubmitters);
  s.labels = {{"run", std::to_string(number / 1000)}};
  s.files = {{"solution.cpp", std::string(1024, static_cast<char>('a' + number % 26))}};
  s.source_hash = s.body_hash = std::string(64, 'b');
  return s;
}

// What one durable write costs this disk at least.
double sync_us(const std::string& folder) {
  const std::string path = folder + "/sync";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  char page[4096] = {};
  const auto start = Steady::now();
  constexpr int kSyncs = 100;
  for (int i = 0; i < kSyncs; ++i) {
    if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd) != 0) std::perror("fdatasync");
  }
  const double us = seconds_since(start) / kSyncs * 1e6;
  close(fd);
  unlink(path.c_str());
  return us;
}

struct Row {
  int stored = 0;
  double submits_s = 0, reads_s = 0, claim_p50_us = 0, claim_p99_us = 0, empty_claim_us = 0, store_mib = 0;
};

class Bench {
 public:
  explicit Bench(const std::string& folder)
      : folder_(folder), path_(folder + "/queue.db"), store_(store::open_sqlite(path_)) {}

  Row at(int stored) {
    Row row;
    row.stored = stored;
    const int measured = std::min(kSubmitsMeasured, stored - filled_);
    fill(stored - measured);
    const auto start = Steady::now();
    fill(stored);
    row.submits_s = measured / seconds_since(start);
    row.reads_s = reads_per_second();
    claims(row);
    row.store_mib = static_cast<double>(std::filesystem::file_size(path_)) / (1 << 20);
    return row;
  }

  // Eight slots whose gradings take no time: every write of a real one.
  double gradings_per_second() {
    queue::Queue queue(*store_, {});
    const auto source = queue.source("bench");
    std::atomic<int> left{kGradings};
    const auto start = Steady::now();
    in_threads(kSlots, [&](int) {
      while (left.fetch_sub(1) > 0) {
        const auto lease = source->claim({"", {"cpu"}, 0, {}, 30s}, 1s);
        if (!lease) return;
        const std::string& id = lease->submission.id;
        source->state(id, lease->attempt, store::State::ready);
        source->state(id, lease->attempt, store::State::measuring);
        source->event(id, lease->attempt, 1, "started", "{}");
        source->event(id, lease->attempt, 2, "verdict", "{}");
        store::Outcome outcome{};
        outcome.kind = store::Outcome::Kind::verdict;
        outcome.verdict = "correct";
        outcome.reward = 1.0;
        source->finish(id, lease->attempt, outcome);
      }
    });
    return kGradings / seconds_since(start);
  }

 private:
  void fill(int until) {
    std::atomic<int> next{filled_};
    std::vector<std::vector<std::string>> made(kSubmitThreads);
    in_threads(kSubmitThreads, [&](int thread) {
      for (int n; (n = next.fetch_add(1)) < until;) {
        const auto result = store_->submit(submission(n), 100'000'000);
        if (result.how != store::Submitted::created) std::abort();
        made[static_cast<std::size_t>(thread)].push_back(result.submission.id);
      }
    });
    for (const auto& some : made) ids_.insert(ids_.end(), some.begin(), some.end());
    filled_ = std::max(filled_, until);
  }

  double reads_per_second() {
    std::atomic<std::int64_t> reads{0};
    const auto start = Steady::now();
    in_threads(kReadThreads, [&](int thread) {
      std::mt19937 random(static_cast<unsigned>(thread));
      std::int64_t mine = 0;
      while (Steady::now() - start < kReadTime) {
        if (!store_->get(ids_[random() % ids_.size()])) std::abort();
        ++mine;
      }
      reads += mine;
    });
    return static_cast<double>(reads) / seconds_since(start);
  }

  void claims(Row& row) {
    std::vector<double> us;
    for (int i = 0; i < kClaims; ++i) {
      const auto start = Steady::now();
      const auto lease = store_->claim({"bench", {"cpu"}, 0, {}, 30s});
      us.push_back(seconds_since(start) * 1e6);
      store_->release(lease->submission.id, lease->attempt);
    }
    std::sort(us.begin(), us.end());
    row.claim_p50_us = us[us.size() / 2];
    row.claim_p99_us = us[us.size() * 99 / 100];
    const auto start = Steady::now();
    for (int i = 0; i < kClaims; ++i) {
      if (store_->claim({"bench", {"cuda"}, 8, {"H200"}, 30s})) std::abort();
    }
    row.empty_claim_us = seconds_since(start) / kClaims * 1e6;
  }

  const std::string folder_, path_;
  std::unique_ptr<store::Store> store_;
  std::vector<std::string> ids_;
  int filled_ = 0;
};

int run(const std::string& folder, int rows_max) {
  std::printf("a durable 4 KiB write costs this disk %.0f us\n\n", sync_us(folder));
  std::printf("%10s %12s %12s %14s %14s %18s %10s\n", "waiting", "submits/s", "reads/s", "claim p50 us", "claim p99 us",
              "nothing fits, us", "MiB");
  Bench bench(folder);
  std::vector<Row> rows;
  for (int stored = 1'000; stored <= rows_max; stored *= 10) {
    rows.push_back(bench.at(stored));
    const Row& r = rows.back();
    std::printf("%10d %12.0f %12.0f %14.0f %14.0f %18.0f %10.0f\n", r.stored, r.submits_s, r.reads_s, r.claim_p50_us,
                r.claim_p99_us, r.empty_claim_us, r.store_mib);
    std::fflush(stdout);
  }
  std::printf("\n%d slots without work, the whole lease path: %.0f gradings/s\n", kSlots, bench.gradings_per_second());
  const Row &first = rows.front(), &last = rows.back();
  std::printf("queue: submits %.0f/s, reads %.0f/s, claim p50 %.0f us at %d, %.0f us at %d\n", last.submits_s,
              last.reads_s, first.claim_p50_us, first.stored, last.claim_p50_us, last.stored);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = "/var/tmp";
  int rows_max = 1'000'000;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--folder")) folder = argv[i + 1];
    if (!std::strcmp(argv[i], "--waiting")) rows_max = std::atoi(argv[i + 1]);
  }
  if (argc % 2 == 0 || rows_max < 1'000) {
    std::fprintf(stderr, "usage: kbench-bench-queue [--folder DIR] [--waiting N (1000..)]\n");
    return 2;
  }
  std::string own = folder + "/kbench-bench-queue-XXXXXX";
  if (!mkdtemp(own.data())) {
    std::perror(own.c_str());
    return 1;
  }
  const int status = run(own, rows_max);
  std::filesystem::remove_all(own);
  return status;
}
