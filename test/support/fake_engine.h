// A Docker Engine that runs nothing: images, builds and containers as far as the daemon uses them, with the states and
// races of the real one (facts tried on 20.10). What a container does is a function of the test. Any answer can be
// scripted over it (FakeHttp).
#pragma once

#include <memory>
#include <set>
#include <stop_token>

#include "test/support/fake_http.h"

namespace kbench::test {

// What the function sees of its container.
struct FakeJob {
  std::string id, name, image;
  std::map<std::string, std::string> labels, env;
  std::vector<std::string> command;
  std::map<std::string, std::string> mounts;  // target -> source on the host
  std::string config;                         // the JSON that created it
};

struct FakeEnd {
  int exit_code = 0;
  bool oom_killed = false;
  std::string log{};
};

class FakeEngine : public FakeHttp {
 public:
  using Behaviour = std::function<FakeEnd(const FakeJob&, std::stop_token killed)>;
  explicit FakeEngine(std::string socket);
  ~FakeEngine();

  // Requests in a version outside of these are refused, as the real one does.
  std::string api_version = "1.41", min_api_version = "1.12", data_root = "/";
  void run(Behaviour behaviour);  // of containers started from now on; without one they exit 0 at once
  // Its id. The tag, if any, moves to it; labels as "a=b,c=d".
  std::string add_image(const std::string& tag, const std::string& labels = {});
  std::set<std::string> image_tags() const;
  std::vector<FakeJob> containers() const;  // those that are there, whatever their state
  int running() const;
  // As `systemctl restart docker` without live-restore: containers are killed, connections break, the socket is away
  // for a while.
  void restart(std::chrono::milliseconds away, bool live_restore = false);
  FakeReply answer_as_usual(const FakeRequest& request) {
    return respond(request);
  }  // for scripts that change some answers only
  FakeReply built(const std::string& log = "Step 1/1\n");  // a good build's answer; its image exists from now on

 private:
  struct Box {
    FakeJob job;
    std::string status = "created";
    FakeEnd end;
    std::jthread thread;
  };
  FakeReply respond(const FakeRequest& request);
  FakeReply image_call(const FakeRequest& request);
  FakeReply container_call(const FakeRequest& request);
  FakeReply create(const FakeRequest& request);
  FakeReply start(const std::shared_ptr<Box>& box);
  FakeReply wait(const std::shared_ptr<Box>& box, const std::string& condition);
  FakeReply list(const FakeRequest& request);
  FakeReply inspect(const std::shared_ptr<Box>& box);
  std::shared_ptr<Box> find(const std::string& id_or_name);
  void end_all();

  struct FakeImage {
    std::string id;
    std::set<std::string> tags;
    std::string labels = "{}";
  };
  mutable std::mutex model_;
  std::condition_variable changed_;
  Behaviour behaviour_;
  std::map<std::string, std::shared_ptr<Box>> boxes_;  // by id
  std::map<std::string, FakeImage> images_;            // by id
  int made_ = 0;
};

FakeReply fake_error(int status, const std::string& message);

}  // namespace kbench::test
