// The whole REST interface on a real socket, over a real SQLite store in a folder of its own.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/api/api.h"
#include "daemon/queue/queue.h"
#include "test/unit/http/client.h"

namespace kbench::test {

std::vector<api::Task> some_tasks();
std::vector<api::SlotStatus> some_slots();  // cpu0, and two of an H200

struct Answer {
  int status = 0;
  std::string head, text;
  nlohmann::json body() const { return nlohmann::json::parse(text); }
  bool has(const std::string& header) const { return head.find("\r\n" + header) != std::string::npos; }
};

class Rest {
 public:
  explicit Rest(const queue::Options& options = {}, const api::Limits& limits = {});
  ~Rest();
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;

  Answer ask(const std::string& method, const std::string& target, const std::string& body = "",
             const std::string& headers = "", bool token = true) const;
  Answer submit(const nlohmann::json& body, const std::string& headers = "") const;
  std::string submitted(const std::string& key = "") const;  // an id
  // Claims it as a grader would, ends it as correct with this reward.
  void grade(const std::string& id, double reward);

  static constexpr char kToken[] = "kb_0123456789abcdef";
  std::string folder;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<queue::Queue> queue;
  std::vector<api::SlotStatus> slots = some_slots();
  std::vector<api::Check> checks;
  std::unique_ptr<http::Server> server;
  std::uint16_t port = 0;
};

nlohmann::json good_submission();

}  // namespace kbench::test
