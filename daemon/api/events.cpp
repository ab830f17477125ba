// GET /submissions/{id}/events: what happened, from the store, then as it happens. A connection that is lost loses
// nothing: the client names the last event it has, in Last-Event-ID or `after`.
#include <nlohmann/json.hpp>

#include "daemon/api/context.h"

namespace kbench::api {
namespace {

constexpr int kEventsAPull = 64;
constexpr std::size_t kBytesAPull = 256 * 1024;  // what a slow reader can hold in memory, one event more at most

// One client's view of a submission's events. Used by one thread at a time.
class Follower {
 public:
  Follower(ContextPtr context, std::string id, std::int64_t after)
      : context_(std::move(context)), id_(std::move(id)), after_(after) {}

  std::pair<std::string, bool> pull() {
    // The state is read first: if it is final, the events read behind it are all there will be.
    const auto submission = context_->store.get(id_);
    const auto events = context_->store.events(id_, after_, kEventsAPull);
    std::string text;
    bool all = events.size() < kEventsAPull;
    for (const auto& event : events) {
      if (text.size() >= kBytesAPull) {
        all = false;
        break;
      }
      const std::string data = "{\"seq\":" + std::to_string(event.seq) +
                               ",\"attempt\":" + std::to_string(event.attempt) + ",\"at\":\"" + time_text(event.at) +
                               "\",\"type\":" + nlohmann::json(event.type).dump() + ",\"data\":" + event.json + "}";
      text += http::event_text(event.seq, event.type, data);
      after_ = event.seq;
    }
    return {std::move(text), all && (!submission || store::is_final(submission->state))};
  }
  // Without a place (there are too many) the heartbeat's look at the store still finds all.
  void attach(std::function<void()> wake) { place_ = context_->queue.hub().subscribe(id_, std::move(wake)); }

 private:
  const ContextPtr context_;
  const std::string id_;
  std::int64_t after_;
  std::optional<queue::Hub::Subscription> place_;
};

http::Response follow(const ContextPtr& context, const http::Request& request) {
  const std::string last(request.header("Last-Event-ID"));
  const auto query = request.query.find("after");
  const bool resumes = !last.empty();
  const auto after = resumes ? number_in(last, "Last-Event-ID", 0, INT64_MAX, 0)
                             : number_in(query == request.query.end() ? "" : query->second, "after", 0, INT64_MAX, 0);
  const auto submission = submission_named(*context, request);
  auto& store = context->store;
  // Such an id is another submission's: a stream that waits for what comes behind it would leave out all before.
  // Whoever has an event has it from the store, which keeps what it has said.
  if (after > 0 && store.events(submission.id, after - 1, 1).empty()) {
    throw http::Problem{400, "unknown-event", "no event " + std::to_string(after) + " of this submission yet",
                        "Send the id of one that came from it, or none: then all its events come.",
                        resumes ? "Last-Event-ID" : "after"};
  }
  http::Response response;
  if (resumes && store::is_final(submission.state) && store.events(submission.id, after, 1).empty()) {
    response.status = 204;  // a browser's EventSource would come back for ever otherwise
    return response;
  }
  response.content_type = "text/event-stream";
  const auto follower = std::make_shared<Follower>(context, submission.id, after);
  response.stream = http::Stream{[follower] { return follower->pull(); },
                                 [follower](std::function<void()> wake) { follower->attach(std::move(wake)); }};
  return response;
}

}  // namespace

void mount_events(http::Server& server, const ContextPtr& context) {
  resource(server, "GET", "/submissions/{id}/events", {"after"},
           [context](const http::Request& request) { return follow(context, request); });
}

}  // namespace kbench::api
