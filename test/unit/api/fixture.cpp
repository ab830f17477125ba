#include "test/unit/api/fixture.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

namespace kbench::test {

std::vector<api::Task> some_tasks() {
  return {{"raw-cuda/segmented-exclusive-scan",
           "Scan",
           "1",
           "h1",
           "GB/s",
           1,
           {"cpu", "cuda"},
           {"cuda", "cpp", "python"},
           "# Scan"},
          {"norm-rope-fusion/fused-residual-add-rmsnorm",
           "Norm",
           "1",
           "h2",
           "GB/s",
           1,
           {"cpu", "cuda"},
           {"cuda", "cpp"},
           "# Norm"},
          {"comm/all-reduce", "Reduce", "1", "h3", "GB/s", 2, {"cuda"}, {"cuda"}, "# Reduce"},
          {"raw-cuda/copy", "Copy", "1", "h4", "GB/s", 1, {"cpu"}, {"cpp"}, ""},
          {"other/copy", "Copy", "1", "h5", "GB/s", 1, {"cpu"}, {"cpp"}, ""}};
}

std::vector<api::SlotStatus> some_slots() {
  return {{"cpu0", "cpu", "a processor", "", "free", "", ""},
          {"gpu0", "cuda", "NVIDIA H200", "GPU-0", "leased", "", "s-1"},
          {"gpu1", "cuda", "NVIDIA H200", "GPU-1", "quarantined", "XID 79", ""}};
}

nlohmann::json good_submission() {
  return {{"task", "segmented-exclusive-scan"},
          {"device", "cpu"},
          {"files", {{"solution.cpp", "int x;\n"}}},
          {"labels", {{"run", "r1"}}}};
}

Rest::Rest(const queue::Options& options, const api::Limits& limits) {
  std::string name = (std::filesystem::temp_directory_path() / "kbench-api-XXXXXX").string();
  folder = ::mkdtemp(name.data());
  store = store::open_sqlite(folder + "/kbench.sqlite");
  queue = std::make_unique<queue::Queue>(*store, options);
  http::Limits server_limits;
  server_limits.stream_heartbeat = std::chrono::seconds(5);
  server_limits.body_bytes_max = 8 << 20;
  server = http::Server::create(server_limits);
  api::mount(*server, {*store, *queue, some_tasks(), [this] { return slots; }, [this] { return checks; }, kToken,
                       "1.2.3", limits});
  port = server->listen("127.0.0.1", 0);
}

Rest::~Rest() {
  queue->stop();
  server->stop();
  server.reset();
  queue.reset();
  store.reset();
  std::filesystem::remove_all(folder);
}

Answer Rest::ask(const std::string& method, const std::string& target, const std::string& body,
                 const std::string& headers, bool token) const {
  RawClient client(port);
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: h\r\n" + headers;
  if (token) request += std::string("Authorization: Bearer ") + kToken + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(request + "\r\n" + body);
  const auto raw = client.answer();
  Answer answer;
  answer.status = status_of(raw);
  answer.text = body_of(raw);
  answer.head = raw.substr(0, raw.size() - answer.text.size());
  return answer;
}

Answer Rest::submit(const nlohmann::json& body, const std::string& headers) const {
  return ask("POST", "/api/v1/submissions", body.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore),
             "Content-Type: application/json\r\n" + headers);
}

std::string Rest::submitted(const std::string& key) const {
  const auto answer = submit(good_submission(), key.empty() ? "" : "Idempotency-Key: " + key + "\r\n");
  REQUIRE(answer.status == 202);
  return answer.body()["id"];
}

void Rest::grade(const std::string& id, double reward) {
  store::Wanted wanted;
  wanted.grader = "test";
  wanted.devices = {"cpu", "cuda"};
  wanted.gpus_max = 8;
  wanted.gpu_models = {"NVIDIA H200"};
  wanted.lease = std::chrono::seconds(30);
  const auto lease = store->claim(wanted);
  REQUIRE(lease);
  REQUIRE(lease->submission.id == id);
  REQUIRE(store->set_state(id, lease->attempt, store::State::preparing));
  REQUIRE(store->append_event(id, lease->attempt, 1, "started", R"({"seq":1,"ms":2,"type":"started"})"));
  REQUIRE(store->set_state(id, lease->attempt, store::State::measuring));
  store::Outcome outcome{};
  outcome.kind = store::Outcome::Kind::verdict;
  outcome.verdict = "correct";
  outcome.reward = reward;
  outcome.interval_low = reward - 1;
  outcome.interval_high = reward + 1;
  outcome.metric = "GB/s";
  outcome.details_json = R"({"runs":5})";
  outcome.log = "compiled\n";
  outcome.rank_reason = "cpu";
  REQUIRE(store->finish(id, lease->attempt, outcome, 3));
}

}  // namespace kbench::test
