#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "test/unit/api/fixture.h"

using namespace kbench;
using namespace kbench::test;
using nlohmann::json;

namespace {
const std::string kAll = "/api/v1/submissions";
}

TEST_CASE("a submission is taken, shown, graded, shown again") {
  Rest rest;
  const auto taken = rest.submit(good_submission());
  CHECK(taken.status == 202);
  const auto body = taken.body();
  const std::string id = body["id"];
  CHECK(taken.has("Location: " + kAll + "/" + id + "\r\n"));
  CHECK(body["task"] == "raw-cuda/segmented-exclusive-scan");
  CHECK(body["state"] == "queued");
  CHECK(body["language"] == "cpp");
  CHECK(body["labels"] == json{{"run", "r1"}});
  CHECK(body["reward"].is_null());
  CHECK(body["verdict"].is_null());
  CHECK(body["created"].get<std::string>().size() == 24);
  CHECK(body["submitter"] == "local");
  CHECK(rest.store->files(id)[0].content == "int x;\n");
  CHECK(rest.ask("GET", kAll + "/" + id).body() == body);
  CHECK(rest.ask("GET", kAll + "/" + id + "/log").text.empty());
  CHECK(rest.ask("GET", kAll + "/" + id + "/details").status == 404);

  rest.grade(id, 123.5);
  const auto done = rest.ask("GET", kAll + "/" + id).body();
  CHECK(done["state"] == "done");
  CHECK(done["verdict"] == "correct");
  CHECK(done["reward"] == 123.5);
  CHECK(done["interval"] == json{122.5, 124.5});
  CHECK(done["rank"] == json{{"eligible", false}, {"reason", "cpu"}});
  const auto log = rest.ask("GET", kAll + "/" + id + "/log");
  CHECK(log.text == "compiled\n");
  CHECK(log.has("Content-Type: text/plain; charset=utf-8\r\n"));
  CHECK(rest.ask("GET", kAll + "/" + id + "/details").body()["runs"] == 5);
}

TEST_CASE("a submission as a form") {
  const Rest rest;
  const std::string body =
      "--B\r\nContent-Disposition: form-data; name=\"task\"\r\n\r\nraw-cuda/copy\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"solution.cpp\"\r\n\r\nint y;\r\n--B--\r\n";
  const auto taken = rest.ask("POST", kAll, body, "Content-Type: multipart/form-data; boundary=B\r\n");
  CHECK(taken.status == 202);
  CHECK(rest.store->files(taken.body()["id"])[0].content == "int y;");
}

TEST_CASE("what is refused is not stored") {
  Rest rest;
  auto bad = good_submission();
  bad["task"] = "segmented-exclusive-scam";
  bad["files"]["../x"] = "";
  const auto refused = rest.submit(bad);
  CHECK(refused.status == 422);
  CHECK(refused.has("Content-Type: application/problem+json\r\n"));
  CHECK(refused.body()["field"] == "task");
  CHECK(refused.body()["detail"].get<std::string>().find("segmented-exclusive-scan?") != std::string::npos);
  CHECK(refused.body()["errors"].size() == 2);
  CHECK(rest.ask("POST", kAll, "{\"task\":", "Content-Type: application/json\r\n").status == 400);
  CHECK(rest.ask("POST", kAll, "task=x", "Content-Type: application/x-www-form-urlencoded\r\n").status == 415);
  bad = good_submission();
  bad["files"]["big.h"] = std::string(1024 * 1024 + 1, 'x');
  CHECK(rest.submit(bad).status == 413);
  CHECK(rest.ask("POST", kAll, std::string((8 << 20) + 1, 'x'), "Content-Type: application/json\r\n").status == 413);
  CHECK(rest.ask("GET", kAll).body()["submissions"].empty());
}

TEST_CASE("no token, no answer") {
  const Rest rest;
  for (const std::string target :
       {"/api/v1/submissions", "/api/v1/tasks", "/api/v1/gpus", "/metrics", "/api/v1/submissions/x/log"}) {
    CHECK(rest.ask("GET", target, "", "", false).status == 401);
    CHECK(rest.ask("GET", target, "", "Authorization: Bearer kb_0123456789abcdeX\r\n", false).status == 401);
  }
  CHECK(rest.ask("POST", "/api/v1/submissions", good_submission().dump(), "Content-Type: application/json\r\n", false)
            .status == 401);
}

TEST_CASE("idempotency keys") {
  Rest rest;
  const std::string key = "Idempotency-Key: k1\r\n";
  const auto first = rest.submit(good_submission(), key);
  CHECK(first.status == 202);
  CHECK_FALSE(first.has("Idempotency-Replayed"));
  const auto again = rest.submit(good_submission(), key);
  CHECK(again.status == 202);
  CHECK(again.has("Idempotency-Replayed: true\r\n"));
  CHECK(again.body()["id"] == first.body()["id"]);
  // The same in another form is the same request.
  const std::string form =
      "--B\r\nContent-Disposition: form-data; name=\"task\"\r\n\r\nsegmented-exclusive-scan\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"device\"\r\n\r\ncpu\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"label\"\r\n\r\nrun=r1\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"solution.cpp\"\r\n\r\nint x;\n\r\n--B--\r\n";
  CHECK(rest.ask("POST", kAll, form, "Content-Type: multipart/form-data; boundary=B\r\n" + key).body()["id"] ==
        first.body()["id"]);
  auto other = good_submission();
  other["files"]["solution.cpp"] = "int z;";
  const auto conflict = rest.submit(other, key);
  CHECK(conflict.status == 422);
  CHECK(conflict.body()["field"] == "Idempotency-Key");
  CHECK(rest.submit(good_submission(), "Idempotency-Key: k2\r\n").body()["id"] != first.body()["id"]);
  CHECK(rest.submit(good_submission(), "Idempotency-Key: a b\r\n").status == 400);
  CHECK(rest.submit(good_submission(), "Idempotency-Key:\r\n").status == 400);
  CHECK(rest.submit(good_submission(), "Idempotency-Key: " + std::string(129, 'k') + "\r\n").status == 400);
  CHECK(rest.ask("GET", kAll).body()["submissions"].size() == 2);
}

TEST_CASE("many at once with one key: one submission") {
  const Rest rest;
  std::vector<std::thread> threads;
  std::vector<Answer> answers(12);
  for (auto& answer : answers) {
    threads.emplace_back([&] { answer = rest.submit(good_submission(), "Idempotency-Key: same\r\n"); });
  }
  for (auto& thread : threads) thread.join();
  std::set<std::string> ids;
  for (const auto& answer : answers) {
    CHECK((answer.status == 202 || answer.status == 409));
    if (answer.status == 202) ids.insert(answer.body()["id"].get<std::string>());
  }
  CHECK(ids.size() == 1);
  CHECK(rest.ask("GET", kAll).body()["submissions"].size() == 1);
}

TEST_CASE("a full queue; a server that goes down") {
  queue::Options options;
  options.depth_max = 2;
  const Rest rest(options);
  rest.submitted();
  rest.submitted("k");
  const auto full = rest.submit(good_submission());
  CHECK(full.status == 503);
  CHECK(full.has("Retry-After: 5\r\n"));
  CHECK(full.body()["type"] == "urn:kbench:queue-full");
  CHECK(full.body()["detail"].get<std::string>().find("2 submissions (queue.depth_max)") != std::string::npos);
  CHECK(rest.submit(good_submission(), "Idempotency-Key: k\r\n").status == 202);  // its place is taken already
  rest.queue->stop();
  CHECK(rest.submit(good_submission()).body()["type"] == "urn:kbench:stopping");
}

TEST_CASE("cancel") {
  Rest rest;
  const auto id = rest.submitted();
  const auto cancelled = rest.ask("DELETE", kAll + "/" + id);
  CHECK(cancelled.status == 200);
  CHECK(cancelled.body()["state"] == "cancelled");
  CHECK(rest.ask("DELETE", kAll + "/" + id).status == 200);  // a retry after a lost answer
  CHECK(rest.ask("DELETE", kAll + "/s-nothing").status == 404);

  const auto running = rest.submitted();
  store::Wanted wanted;
  wanted.grader = "test";
  wanted.devices = {"cpu"};
  wanted.lease = std::chrono::seconds(30);
  const auto lease = rest.store->claim(wanted);
  REQUIRE(lease);
  const auto asked = rest.ask("DELETE", kAll + "/" + running);
  CHECK(asked.status == 202);
  CHECK(asked.body()["cancel_requested"] == true);
  store::Outcome outcome{};
  outcome.kind = store::Outcome::Kind::cancelled;
  REQUIRE(rest.store->finish(running, lease->attempt, outcome, 3));
  CHECK(rest.ask("DELETE", kAll + "/" + running).status == 200);

  const auto done = rest.submitted();
  rest.grade(done, 1);
  CHECK(rest.ask("DELETE", kAll + "/" + done).status == 409);
}

TEST_CASE("lists: pages and filters") {
  Rest rest;
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(rest.submitted());
  auto other = good_submission();
  other["task"] = "raw-cuda/copy";
  other["labels"] = {{"run", "r=2"}};
  rest.submit(other);
  std::vector<std::string> seen;
  std::string cursor;
  int pages = 0;
  do {
    const auto page =
        rest.ask("GET", kAll + "?limit=2&task=segmented-exclusive-scan" + (cursor.empty() ? "" : "&cursor=" + cursor))
            .body();
    for (const auto& s : page["submissions"]) seen.push_back(s["id"]);
    cursor = page["next"].is_null() ? "" : page["next"].get<std::string>();
    ++pages;
  } while (!cursor.empty() && pages < 10);
  std::reverse(seen.begin(), seen.end());
  CHECK(seen == ids);
  CHECK(pages == 3);
  CHECK(rest.ask("GET", kAll + "?label=run%3Dr%3D2").body()["submissions"].size() == 1);
  CHECK(rest.ask("GET", kAll + "?label=run=r=2").body()["submissions"].size() == 1);
  rest.ask("DELETE", kAll + "/" + ids[0]);
  CHECK(rest.ask("GET", kAll + "?state=cancelled").body()["submissions"].size() == 1);
  CHECK(rest.ask("GET", kAll + "?device=cuda").body()["submissions"].empty());
  for (const auto& [query, field] :
       std::map<std::string, std::string>{{"limit=0", "limit"},          {"limit=201", "limit"},
                                          {"limit=x", "limit"},          {"limit=", "limit"},
                                          {"state=on", "state"},         {"state=Done", "state"},
                                          {"verdict=corect", "verdict"}, {"verdict=done", "verdict"},
                                          {"device=tpu", "device"},      {"task=segmented-exclusive-scam", "task"},
                                          {"task=copy", "task"},         {"label=x", "label"},
                                          {"label=", "label"},           {"label=%3Dx", "label"},
                                          {"state=", "state"},           {"task=", "task"},
                                          {"verdict=", "verdict"},       {"device", "device"},
                                          {"submitter=", "submitter"},   {"colour=red", "colour"},
                                          {"cursor=", "cursor"},         {"cursor=rubbish", "cursor"}}) {
    const auto refused = rest.ask("GET", kAll + "?" + query);
    INFO(query);
    CHECK(refused.status == 400);
    CHECK(refused.body()["field"] == field);
    CHECK_FALSE(refused.body()["detail"].get<std::string>().empty());
  }
  const auto detail = [&](const std::string& query) {
    return rest.ask("GET", kAll + "?" + query).body()["detail"].get<std::string>();
  };
  CHECK(detail("device=tpu") == "It is one of cpu, cuda.");
  CHECK(detail("state=on") == "It is one of queued, preparing, ready, measuring, done, cancelled, failed.");
  CHECK(detail("verdict=x") ==
        "It is one of correct, incorrect, compile_error, runtime_error, timeout, out_of_memory, integrity_violation, "
        "rule_violation, infra_error.");
  CHECK(detail("task=copy").find("other/copy, raw-cuda/copy?") != std::string::npos);
  for (const char* query : {"verdict=infra_error", "verdict=rule_violation", "state=measuring", "task=gone/task"}) {
    INFO(query);
    CHECK(rest.ask("GET", kAll + "?" + query).body()["submissions"].empty());
  }
}

TEST_CASE("what is sent in a Content-Encoding is refused by that name") {
  const Rest rest;
  const std::string json = "Content-Type: application/json\r\n", good = good_submission().dump();
  const auto refused = rest.ask("POST", kAll, "\x1f\x8b\x08", json + "Content-Encoding: gzip\r\n");
  CHECK(refused.status == 415);
  CHECK(refused.body()["field"] == "Content-Encoding");
  CHECK(refused.has("Accept-Encoding: identity\r\n"));
  CHECK(rest.ask("POST", kAll, good, json + "Content-Encoding: identity, br\r\n").status == 415);
  CHECK(rest.ask("POST", kAll, good, json + "Content-Encoding: gzip\r\n", false).status == 401);
  CHECK(rest.ask("POST", kAll, good, json + "Content-Encoding: Identity\r\n").status == 202);
  CHECK(rest.ask("GET", kAll, "", "Content-Encoding: gzip\r\n").body()["submissions"].size() == 1);  // of no body
}

TEST_CASE("tasks and slots") {
  const Rest rest;
  const auto all = rest.ask("GET", "/api/v1/tasks").body()["tasks"];
  CHECK(all.size() == 5);
  CHECK(all[0]["id"] == "raw-cuda/segmented-exclusive-scan");
  CHECK_FALSE(all[0].contains("instruction"));
  CHECK(rest.ask("GET", "/api/v1/tasks/raw-cuda/segmented-exclusive-scan").body()["instruction"] == "# Scan");
  CHECK(rest.ask("GET", "/api/v1/tasks/segmented-exclusive-scan").body()["id"] == "raw-cuda/segmented-exclusive-scan");
  const auto unknown = rest.ask("GET", "/api/v1/tasks/copy");
  CHECK(unknown.status == 404);
  CHECK(unknown.body()["detail"].get<std::string>().find("other/copy, raw-cuda/copy?") != std::string::npos);
  const auto slots = rest.ask("GET", "/api/v1/gpus").body()["slots"];
  CHECK(slots[1]["submission"] == "s-1");
  CHECK(slots[2]["reason"] == "XID 79");
  CHECK(slots[0]["uuid"].is_null());
}

TEST_CASE("health, readiness, metrics") {
  Rest rest;
  rest.submitted();
  CHECK(rest.ask("GET", "/healthz", "", "", false).body()["version"] == "1.2.3");
  rest.checks = {{"engine", true, ""}};
  CHECK(rest.ask("GET", "/readyz", "", "", false).body()["ready"] == true);
  rest.checks = {{"engine", false, "cannot reach it"}};
  const auto unready = rest.ask("GET", "/readyz", "", "", false);
  CHECK(unready.status == 503);
  CHECK(unready.text.find("{\"part\":\"engine\",\"ok\":false,\"cause\":\"cannot reach it\"}") != std::string::npos);
  CHECK(unready.has("Retry-After: "));
  rest.checks.clear();
  rest.slots = {some_slots()[2]};
  CHECK(rest.ask("GET", "/readyz", "", "", false).text.find("every slot is quarantined") != std::string::npos);
  const auto metrics = rest.ask("GET", "/metrics").text;
  CHECK(metrics.find("kbench_submissions{state=\"queued\"} 1\n") != std::string::npos);
  CHECK(metrics.find("kbench_slots{device=\"cuda\",model=\"NVIDIA H200\",state=\"quarantined\"} 1\n") !=
        std::string::npos);
  CHECK(metrics.find("kbench_submit_requests_total{result=\"created\"} 1\n") != std::string::npos);
}

TEST_CASE("wrong methods") {
  const Rest rest;
  const auto refused = rest.ask("PUT", kAll);
  CHECK(refused.status == 405);
  CHECK(refused.has("Allow: GET, HEAD, POST\r\n"));
  CHECK(rest.ask("POST", "/api/v1/gpus").status == 405);
  CHECK(rest.ask("GET", "/api/v2/gpus").status == 404);
}
