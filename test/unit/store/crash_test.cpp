// kill -9 at any instruction: a child writes through the store and says on a pipe what was acknowledged.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {

void say(int pipe, const std::string& line) {
  const std::string text = line + "\n";
  if (write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    _exit(3);  // below PIPE_BUF: whole or not at all
}

[[noreturn]] void write_until_killed(const std::string& path, int pipe) {
  const auto store = open_sqlite(path);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (;;) {
        NewSubmission s = sample("u" + std::to_string(i));
        s.files.push_back({"big", std::string(20'000, 'x')});
        say(pipe, "submitted " + submit(*store, s));
      }
    });
    threads.emplace_back([&] {
      for (;;) {
        const auto lease = store->claim(wanted());
        if (!lease) continue;
        const std::string& id = lease->submission.id;
        store->append_event(id, lease->attempt, 1, "phase", "{}");
        if (store->finish(id, lease->attempt, correct(), 3)) say(pipe, "finished " + id);
      }
    });
  }
  for (;;) pause();
}

std::string run_and_kill(const std::string& path, std::chrono::milliseconds after) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    write_until_killed(path, ends[1]);
  }
  close(ends[1]);
  std::thread killer([&] {
    std::this_thread::sleep_for(after);
    kill(child, SIGKILL);
  });
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
  killer.join();
  waitpid(child, nullptr, 0);
  close(ends[0]);
  return said;
}

}  // namespace

TEST_CASE("after kill -9 at a random instant everything acknowledged is there, whole, and nothing is half there") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Folder folder;
  std::size_t acknowledged = 0;
  for (int round = 0; round < 8; ++round) {
    const std::string said = run_and_kill(folder.db(), std::chrono::milliseconds(20 + random() % 400));
    const auto store = open_sqlite(folder.db());
    std::istringstream lines(said);
    for (std::string what, id; lines >> what >> id;) {
      ++acknowledged;
      const auto got = store->get(id);
      REQUIRE(got);
      if (what == "finished") REQUIRE(got->state == State::done);
    }
    Connection db("dbname=\"" + folder.db() + "\"");
    std::int64_t torn = 0;
    db.one("select count(*) from submissions s where 3 <> (select count(*) from files f where f.submission = s.id)",
           std::tie(torn));
    REQUIRE(torn == 0);
    REQUIRE(broken_invariant(db) == "");
  }
  CHECK(acknowledged > 100);
}
