// What a submission goes through when nothing is wrong with the machine.
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "test/unit/grader/lab.h"

using namespace kbench;
using namespace kbench::test;

namespace {

// As the verifier does: one request, one answer.
std::string post(const std::string& folder, const std::string& lines) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder + "/report.sock").c_str());
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
  const std::string request =
      "POST /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + std::to_string(lines.size()) +
      "\r\n\r\n" + lines;
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer(4096, '\0');
  std::size_t have = 0;
  for (ssize_t count; (count = ::recv(fd, answer.data() + have, answer.size() - have, 0)) > 0;)
    have += static_cast<std::size_t>(count);
  ::close(fd);
  answer.resize(have);
  return answer;
}

std::set<std::string> kinds_of(const std::vector<FakeJob>& jobs) {
  std::set<std::string> kinds;
  for (const FakeJob& job : jobs) kinds.insert(job.labels.at("kbench.kind"));
  return kinds;
}

}  // namespace

TEST_CASE("a correct submission: verdict, reward, events, log, details, nothing left") {
  Lab lab;
  std::map<std::string, Json> configs;
  std::string source;
  lab.behave("compile", [&](const FakeJob& job, std::stop_token killed) {
    configs["compile"] = Json::parse(job.config);
    std::ifstream file(job.mounts.at("/submission") + "/lib/a.h");
    source.assign(std::istreambuf_iterator<char>(file), {});
    return compiles(job, killed);
  });
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    configs["measure"] = Json::parse(job.config);
    CHECK(std::filesystem::file_size(job.mounts.at("/artefact") + "/submission.so") == 3);
    CHECK(job.env.at("NVIDIA_VISIBLE_DEVICES") == "void");
    return measures(job, killed);
  });
  lab.start();
  const std::string id = lab.submit();
  const store::Submission done = lab.wait(id);
  CHECK(done.state == State::done);
  CHECK(done.verdict == "correct");
  CHECK(done.reward == 7);
  CHECK(done.attempt == 1);
  CHECK(done.rank_eligible);
  CHECK(source == "// a");
  CHECK(lab.event_types(id) == std::vector<std::string>{"phase", "phase", "compiled", "phase", "phase", "started",
                                                        "phase", "verdict", "result"});
  CHECK(lab.db->log(id) == "== compile\na warning\n== measure\nverifier's own output\n");
  const Json details = Json::parse(lab.db->details(id).value());
  CHECK(details["daemon"]["images"]["judge"].get<std::string>().starts_with("sha256:"));
  CHECK(details["daemon"]["artefact"]["bytes"] == 3);
  for (const char* phase : {"image", "compile", "slot", "measure"}) CHECK(details["daemon"]["seconds"].contains(phase));
  CHECK(configs["measure"]["User"] == "0:0");
  CHECK(configs["measure"]["HostConfig"]["CapAdd"] == Json{"SETUID", "SETGID", "KILL"});
  CHECK(configs["compile"]["HostConfig"]["CapAdd"] == Json::array());
  CHECK(configs["compile"]["User"].get<std::string>() >= "190000:190000");
  CHECK(configs["measure"]["Image"] != configs["compile"]["Image"]);
  lab.check_clean();
}

TEST_CASE("what does not compile ends without a slot and without measuring") {
  Lab lab;
  lab.behave("compile", [](const FakeJob& job, std::stop_token) {
    write(job.mounts.at("/out") + "/compile.json", R"({"ok":false,"exit_code":1,"seconds":0.1,"log":"error: x"})");
    return FakeEnd{.exit_code = 1};
  });
  lab.start();
  const std::string id = lab.submit();
  const store::Submission done = lab.wait(id);
  CHECK(done.verdict == "compile_error");
  CHECK(done.reward == 0);
  CHECK(lab.db->log(id)->find("error: x") != std::string::npos);
  for (const std::string& request : lab.fake.requests()) CHECK(request.find("measure") == std::string::npos);
  lab.check_clean();
}

TEST_CASE("a compiler that is too slow or too hungry is the submission's") {
  Lab lab;
  SECTION("its own deadline") {
    lab.behave("compile", [](const FakeJob& job, std::stop_token) {
      write(job.mounts.at("/out") + "/compile.json", R"({"ok":false,"exit_code":-1,"seconds":2.1,"log":"stopped"})");
      return FakeEnd{.exit_code = 1};
    });
    CHECK(lab.start().wait(lab.submit()).verdict == "timeout");
  }
  SECTION("the container's") {
    lab.options.compile_deadline = milliseconds(100);
    lab.behave("compile", until_killed);
    CHECK(lab.start().wait(lab.submit()).verdict == "timeout");
  }
  SECTION("memory") {
    lab.behave("compile",
               [](const FakeJob&, std::stop_token) { return FakeEnd{.exit_code = 137, .oom_killed = true}; });
    CHECK(lab.start().wait(lab.submit()).verdict == "out_of_memory");
  }
  lab.check_clean();
}

TEST_CASE("an image or a reference that takes longer than its deadline is infrastructure, and the deadline is named") {
  const std::string what = GENERATE("image", "reference");
  Lab lab;
  std::atomic<int> builds = 0;
  if (what == "image") {
    lab.engine_options.build_timeout = milliseconds(100);
    lab.fake.script("POST /build", builds_for_ever(builds), 100);
  } else {
    lab.options.reference_deadline = milliseconds(100);
    lab.behave("reference", until_killed);
  }
  lab.start();
  const store::Submission done = lab.wait(lab.submit());
  CHECK(done.verdict == "infra_error");
  CAPTURE(done.reason);
  CHECK(done.reason.starts_with(what + ": "));
  CHECK(done.reason.find(what == "image" ? "engine.build_timeout" : "grader.reference_deadline") != std::string::npos);
  lab.check_clean();
}

TEST_CASE("an end of its own that the Engine tells late is no timeout") {
  Lab lab;
  lab.options.compile_deadline = lab.options.measure_deadline = milliseconds(100);
  lab.fake.script(
      "POST /containers/",
      [&](const FakeRequest& request) {
        FakeReply reply = lab.fake.answer_as_usual(request);
        if (request.path.ends_with("/wait"))
          reply.stream = [usual = reply.stream](FakeWire& wire, const auto& chunk) {
            std::string said;
            const bool whole = usual(wire, [&](std::string_view text) { said += text; });
            std::this_thread::sleep_for(milliseconds(600));
            chunk(said);
            return whole;
          };
        return reply;
      },
      1000);
  CHECK(lab.start().wait(lab.submit()).verdict == "correct");
  lab.check_clean();
}

TEST_CASE("measuring past its deadline is killed and a timeout, what is around it is nobody's") {
  const std::string doing = GENERATE("measure", "compare");
  Lab lab;
  lab.options.measure_deadline = milliseconds(100);
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    write(job.mounts.at("/kbench/out") + "/events.ndjson", event(1, "started") + event(2, "phase", {{"phase", doing}}));
    return until_killed(job, killed);
  });
  lab.start();
  const auto found = lab.wait(lab.submit());
  if (doing == "measure") {
    CHECK(found.verdict == "timeout");
  } else {
    CHECK(found.verdict == "infra_error");
    CHECK(found.reason.find("out of time") != std::string::npos);
  }
  lab.check_clean();
}

TEST_CASE("images are built once, however many submissions ask at a time") {
  Lab lab;
  lab.slot_options.cpu_slots = {"", "", "", ""};
  lab.start();
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(lab.submit());
  for (const std::string& id : ids) CHECK(lab.wait(id).verdict == "correct");
  CHECK(lab.fake.count("POST /build") == 2);  // environment and judge
  const std::string other = lab.submit("cpu", "norm-rope-fusion/fused-residual-add-rmsnorm");
  CHECK(lab.wait(other).verdict == "correct");
  CHECK(lab.fake.count("POST /build") == 4);
  lab.check_clean();
}

TEST_CASE("one slot measures one at a time, and the next are made ready meanwhile") {
  Lab lab;
  std::atomic<int> measuring = 0, most = 0;
  std::atomic<bool> go = false;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    most = std::max<int>(most, ++measuring);
    while (!go && !killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    --measuring;
    return measures(job, killed);
  });
  lab.options.measure_deadline = milliseconds(20'000);
  lab.start();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(lab.submit());
  lab.wait_until([&] {
    int ready = 0;
    for (const std::string& id : ids) ready += lab.get(id).state == State::ready;
    return ready == 2 && measuring == 1;
  });
  CHECK(lab.grader->slots().at(0).state == gpu::SlotState::busy);
  CHECK(kinds_of(lab.fake.containers()) == std::set<std::string>{"measure"});
  go = true;
  for (const std::string& id : ids) CHECK(lab.wait(id).verdict == "correct");
  CHECK(most == 1);
  lab.check_clean();
}

TEST_CASE("a backlog delays another submitter's single submission by the grading under way and one more at most") {
  Lab lab;
  std::mutex mutex;
  std::vector<std::string> begun;
  std::atomic<std::size_t> may_end = 0;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    std::size_t mine = 0;
    {
      const std::lock_guard lock(mutex);
      begun.push_back(Json::parse(job.config)["Labels"]["kbench.submission"]);
      mine = begun.size();
    }
    while (mine > may_end && !killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return measures(job, killed);
  });
  lab.options.measure_deadline = milliseconds(20'000);
  lab.options.prepare_ahead = 2;
  lab.start();
  std::vector<std::string> backlog;
  for (int i = 0; i < 40; ++i) backlog.push_back(lab.submit("cpu", kScan, "many"));
  lab.wait_until([&] {
    const auto is_ready = [&](const std::string& id) { return lab.get(id).state == State::ready; };
    const std::lock_guard lock(mutex);
    return begun.size() == 1 && std::count_if(backlog.begin(), backlog.end(), is_ready) == 2;
  });
  const std::string single = lab.submit("cpu", kScan, "one");
  may_end = 1;  // the next of the backlog is ready and begins; in the meantime the single one is made ready
  lab.wait_until([&] { return lab.get(single).state == State::ready; });
  may_end = 100;
  CHECK(lab.wait(single).verdict == "correct");
  {
    const std::lock_guard lock(mutex);
    const auto at = std::find(begun.begin(), begun.end(), single) - begun.begin();
    CHECK(at == 2);
  }
  for (const std::string& id : backlog) CHECK(lab.wait(id).verdict == "correct");
  lab.check_clean();
}

TEST_CASE("events arrive while it measures; a lost connection loses none and doubles none") {
  Lab lab;
  std::atomic<bool> first_sent = false, go = false;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    const std::string live = post(job.mounts.at("/kbench/report"), event(1, "started"));
    CHECK(live.find("{\"next\":2}") != std::string::npos);
    first_sent = true;
    while (!go) std::this_thread::sleep_for(milliseconds(1));
    return measures(job, killed);  // 2 and 3 are in the spool alone
  });
  lab.start();
  const std::string id = lab.submit();
  lab.wait_until([&] { return first_sent.load(); });
  CHECK(lab.get(id).state == State::measuring);
  CHECK(lab.count_events(id, "started") == 1);
  go = true;
  lab.wait(id);
  CHECK(lab.count_events(id, "started") == 1);
  CHECK(lab.count_events(id, "verdict") == 1);
}

TEST_CASE("cancel: while building, compiling, waiting for a slot and measuring") {
  Lab lab;
  lab.options.measure_deadline = milliseconds(20'000);
  std::atomic<bool> building = false;
  const auto cancelled = [&](const std::string& id) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(lab.db->cancel(id) == store::Cancelled::requested);
    CHECK(lab.wait(id).state == State::cancelled);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
    CHECK_FALSE(lab.get(id).reward);
  };
  SECTION("building") {
    lab.fake.script("POST /build", FakeReply{.stream = [&](FakeWire& wire, const auto& chunk) {
                      chunk("{\"stream\":\"x\"}");
                      building = true;
                      while (!wire.gone()) std::this_thread::sleep_for(milliseconds(1));
                      return true;
                    }});
    lab.start();
    const std::string id = lab.submit();
    lab.wait_until([&] { return building.load(); });
    const std::string other = lab.submit();  // waits for the same image, and builds it when the first has gone
    cancelled(id);
    CHECK(lab.wait(other).verdict == "correct");
  }
  SECTION("compiling") {
    lab.behave("compile", until_killed);
    lab.options.compile_deadline = milliseconds(20'000);
    lab.start();
    const std::string id = lab.submit();
    lab.wait_until([&] { return lab.fake.running() == 1 && kinds_of(lab.fake.containers()).contains("compile"); });
    cancelled(id);
  }
  SECTION("ready and measuring") {
    lab.behave("measure", until_killed);
    lab.start();
    const std::string measuring = lab.submit();
    lab.wait_for(measuring, State::measuring);
    const std::string ready = lab.submit();
    lab.wait_for(ready, State::ready);
    cancelled(ready);
    CHECK(lab.get(measuring).state == State::measuring);
    lab.wait_until([&] { return lab.fake.running() == 1; });
    cancelled(measuring);
    lab.behave("measure", measures);
    CHECK(lab.wait(lab.submit()).verdict == "correct");
  }
  lab.check_clean();
}

TEST_CASE("stopping the grader gives everything back; the next one finishes it") {
  Lab lab;
  lab.behave("measure", until_killed);
  lab.options.measure_deadline = milliseconds(20'000);
  lab.start();
  std::vector<std::string> ids = {lab.submit(), lab.submit()};
  lab.wait_until([&] { return lab.fake.running() == 1 && lab.grader->active() == 2; });
  lab.grader->stop();
  CHECK(lab.fake.containers().empty());
  for (const std::string& id : ids) {
    CHECK(lab.get(id).state == State::queued);
    CHECK(lab.get(id).attempt == 1);  // nobody who was waiting for work has taken it meanwhile
  }
  lab.grader.reset();
  lab.behave("measure", measures);
  lab.start();
  for (const std::string& id : ids) CHECK(lab.wait(id).verdict == "correct");
  lab.check_clean();
}

TEST_CASE("a task that is not there, or is another version now, is said at once") {
  Lab lab;
  lab.start();
  const store::Submission absent = lab.wait(lab.submit("cpu", "family/none"));
  CHECK(absent.state == State::failed);
  CHECK(absent.reason == "task: this grader has no task family/none");
  CHECK(absent.attempt == 1);
  store::NewSubmission old{};
  old.task = kScan;
  old.task_hash = "of last year";
  old.device = "cpu";
  old.files = {{"a.cpp", ""}};
  const store::Submission changed = lab.wait(lab.queue.submit(old).submission.id);
  CHECK(changed.state == State::failed);
  CHECK(changed.reason.starts_with("task: "));
}

TEST_CASE("a slot is free as soon as its container has ended, not when that is removed") {
  Lab lab;
  std::atomic<bool> go = false;
  lab.behave("measure", [&](const FakeJob& job, std::stop_token killed) {
    if (!go) {
      while (!go && !killed.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
      return measures(job, killed);
    }
    return until_killed(job, killed);
  });
  lab.options.measure_deadline = milliseconds(60'000);  // not what ends it
  lab.start();
  const std::string first = lab.submit();
  lab.wait_for(first, State::measuring);
  lab.wait_until([&] { return lab.fake.running() == 1; });
  const std::string second = lab.submit();
  lab.wait_for(second, State::ready);
  std::atomic<bool> removable = false;
  lab.fake.script("DELETE /containers/", [&](const FakeRequest& request) {
    while (!removable) std::this_thread::sleep_for(milliseconds(1));
    return lab.fake.answer_as_usual(request);
  });
  go = true;
  lab.wait_for(second, State::measuring);
  CHECK(lab.get(first).state == State::measuring);
  removable = true;
  CHECK(lab.wait(first).verdict == "correct");
  lab.db->cancel(second);
  lab.wait(second);
  lab.check_clean();
}
