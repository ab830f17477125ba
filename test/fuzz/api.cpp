// A request to the REST interface: its target in the first line ("@" is a submission that there is), Last-Event-ID in
// the second, Idempotency-Key in the third. What is answered keeps to what was asked.
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "daemon/api/api.h"
#include "daemon/http/router.h"
#include "daemon/http/target.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using Json = nlohmann::json;

namespace {

// The routes without the network.
class Routes : public http::Server {
 public:
  void route(std::string method, std::string pattern, http::Access access, http::Handler handler,
             http::Work work) override {
    router.add(std::move(method), pattern, access, std::move(handler), work);
  }
  void authenticate(std::function<std::optional<std::string>(std::string_view)>) override {}
  std::uint16_t listen(const std::string&, std::uint16_t) override { return 0; }
  void stop() override {}
  http::Router router;
};

constexpr int kQueued = 40;
constexpr std::size_t kKeyBytes = 128;

// A store of a few submissions of all sorts, and the interface before it.
struct Site {
  Site() {
    require(::mkdtemp(folder().data()) != nullptr, "a folder for the store");
    std::atexit([] { std::filesystem::remove_all(folder()); });
    store = store::open_sqlite(folder() + "/kbench.db");
    queue::Options options;
    options.depth_max = kQueued;
    queue = std::make_unique<queue::Queue>(*store, options);
    for (int i = 0; i < 12; ++i) submit(i);
    api::mount(routes, {*store, *queue, tasks,
                        [] { return std::vector<api::SlotStatus>{{"cpu0", "cpu", "processor", "", "free", "", ""}}; },
                        [] { return std::vector<api::Check>{}; }, "kb_0123456789abcdef", "1"});
  }
  static std::string& folder() {
    static std::string name =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/kbench-fuzz-XXXXXX" : "/tmp/kbench-fuzz-XXXXXX";
    return name;
  }
  void submit(int i) {
    store::NewSubmission made;
    made.task = tasks[static_cast<std::size_t>(i % 2)].id;
    made.task_hash = "h";
    made.device = "cpu";
    made.language = "cpp";
    made.submitter = i % 3 == 0 ? "other" : "local";
    made.labels = {{"run", std::to_string(i % 4)}, {"a=b", "c"}};
    made.files = {{"solution.cpp", "int x;"}};
    id = store->submit(made, kQueued).submission.id;
    if (i % 4 == 0) return;
    const auto lease = store->claim({"g", {"cpu"}, 0, {}, std::chrono::hours(1)});
    require(lease.has_value(), "something to claim");
    id = lease->submission.id;
    if (i % 4 == 1) return;
    store->set_state(id, 1, store::State::measuring);
    store::Outcome outcome{};
    outcome.kind = i % 4 == 2 ? store::Outcome::Kind::verdict : store::Outcome::Kind::infra;
    outcome.verdict = "correct";
    outcome.reason = "reason";
    outcome.reward = 1;
    store->finish(id, 1, outcome, 1);
  }
  // Nothing: there is no such path.
  std::optional<http::Response> ask(const std::string& method, const std::string& target,
                                    std::map<std::string, std::string> headers = {}, std::string body = "") {
    try {
      http::Target taken = http::decode_target(target);
      for (const std::string& segment : taken.segments) {
        require(!segment.empty() && segment != "." && segment != "..", "no step that is none");
        require(segment.find('/') == segment.npos && segment.find('\0') == segment.npos, "no hidden slash");
        require(http::valid_utf8(segment), "UTF-8");
      }
      http::Match match = routes.router.find(method, taken.segments);
      if (match.route == nullptr) return std::nullopt;
      http::Request request;
      request.method = method;
      request.target = target;
      request.query = query = std::move(taken.query);
      request.path_values = std::move(match.path_values);
      request.headers = std::move(headers);
      request.body = std::move(body);
      request.submitter = "local";
      return match.route->handler(request);
    } catch (const http::Problem& fault) {
      require(!fault.type.empty() && !fault.title.empty() && !fault.detail.empty(), "a reason and a fix");
      return http::problem(fault);
    }
  }
  const std::vector<api::Task> tasks{{"raw-cuda/copy", "Copy", "1", "h", "GB/s", 1, {"cpu"}, {"cpp"}, "text"},
                                     {"other/scan", "Scan", "1", "h", "GB/s", 1, {"cpu"}, {"cpp"}, "text"}};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<queue::Queue> queue;
  Routes routes;
  std::string id;                            // of the last
  std::map<std::string, std::string> query;  // of the last request that was understood
};

std::string asked(const Site& site, const char* name) {
  const auto found = site.query.find(name);
  return found == site.query.end() ? "" : found->second;
}

// A page has what was asked for, newest first, and leads on to what is older.
void check_page(Site& site, const http::Response& response) {
  const Json page = Json::parse(response.body);
  const std::string limit = asked(site, "limit"), label = asked(site, "label"), task = asked(site, "task");
  const Json& found = page.at("submissions");
  require(found.size() <= (limit.empty() ? 50u : std::strtoul(limit.c_str(), nullptr, 10)),
          "no longer than was asked for");
  std::string below = asked(site, "cursor");
  for (const Json& each : found) {
    const std::string id = each.at("id");
    require(below.empty() || id < below, "newest first, behind the cursor");
    below = id;
    for (const char* field : {"device", "state", "verdict", "submitter"})
      require(asked(site, field).empty() || each.at(field) == asked(site, field), "as the filters say");
    const std::string whole = each.at("task");
    require(task.empty() || whole == task || whole.ends_with("/" + task), "of the task");
    if (label.empty()) continue;
    const std::size_t equals = label.find('=');
    require(each.at("labels").at(label.substr(0, equals)) == label.substr(equals + 1), "of the label");
  }
  if (page.at("next").is_null()) return;
  const std::string next = page.at("next");
  require(below.empty() || next <= below, "the next page is older");
  const auto more = site.ask("GET", "/api/v1/submissions?cursor=" + next);
  require(more && more->status == 200, "the cursor of a page is taken");
  const Json older = Json::parse(more->body);
  for (const Json& each : older.at("submissions")) require(each.at("id") < next, "older than the page");
}

// A stream goes on behind the event that the client has.
void check_stream(const http::Response& response, const std::string& last) {
  const std::string text = response.stream->pull().first;
  if (last.empty()) return;
  require(last.find_first_not_of("0123456789", last[0] == '-' ? 1 : 0) == last.npos, "a number");
  const std::int64_t after = std::strtoll(last.c_str(), nullptr, 10);
  require(after >= 0, "of an event");
  if (!text.empty()) require(text.starts_with("id: " + std::to_string(after + 1) + "\n"), "the event behind it");
}

void check_key(Site& site, const std::string& key) {
  static std::map<std::string, std::string> known;  // to where its submission is
  static std::vector<std::string> waiting;          // the submissions
  const auto made =
      site.ask("POST", "/api/v1/submissions", {{"content-type", "application/json"}, {"idempotency-key", key}},
               R"({"task":"copy","device":"cpu","files":{"a.cpp":"int x;"}})");
  require(made.has_value(), "a path");
  const bool good = !key.empty() && key.size() <= kKeyBytes &&
                    std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  require((made->status == 400) == !good, "a key of visible ASCII, neither empty nor long");
  if (made->status != 202) {
    require(!good || (made->status == 503 && !known.contains(key)), "refused when the queue is full");
    if (!good) return;
    require(!waiting.empty(), "full of what was handed in");
    for (const std::string& id : waiting) site.store->cancel(id);  // there is room again
    return waiting.clear();
  }
  const std::string where = made->headers.at("Location");
  const bool first = known.emplace(key, where).second;
  if (first) waiting.push_back(where.substr(where.rfind('/') + 1));
  require(first != made->headers.contains("Idempotency-Replayed"), "a key that was there before is said to be");
  require(known.at(key) == made->headers.at("Location"), "one key, one submission");
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  static Site& site = *new Site;  // its threads end with the process
  Input input(data, size);
  std::string target = input.line();
  if (const std::size_t at = target.find('@'); at != target.npos) target.replace(at, 1, site.id);
  const std::string last = input.line();
  site.query.clear();
  std::map<std::string, std::string> headers;
  if (!last.empty()) headers["last-event-id"] = last;
  if (const auto response = site.ask("GET", target, headers)) {
    const int status = response->status;
    require(status == 200 || status == 204 || status == 400 || status == 404, "an answer to a question");
    require(http::valid_utf8(response->body), "UTF-8");
    if (status >= 400) require(Json::parse(response->body).at("status") == status, "a problem");
    if (status == 200 && target.starts_with("/api/v1/submissions?")) check_page(site, *response);
    if (status == 200 && response->stream) check_stream(*response, last);
  }
  if (!input.rest().empty()) check_key(site, input.line());
  return 0;
}
