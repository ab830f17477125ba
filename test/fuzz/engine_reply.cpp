// Whole answers of an Engine, from the status line on (chunks too), to the call that the first byte chooses. What else
// is asked on the way is answered as an Engine does.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "daemon/engine/streams.h"
#include "daemon/engine/transport.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using namespace kbench::engine;

namespace {

using Json = nlohmann::json;

std::string json_answer(int status, const Json& body) {
  const std::string text = body.dump();
  return "HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\n\r\n" + text;
}

constexpr char kImage[] = "sha256:1";
constexpr int kExitCode = 7;

// Answers one request with the bytes it was given, the others as an Engine does that has a single container, x.
class Replies {
 public:
  Replies() : path_("/tmp/kbench-fuzz-" + std::to_string(::getpid()) + ".sock") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ::unlink(path_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(listener_, 64) == 0,
        "a socket to listen at");
    std::atexit([] { ::unlink(("/tmp/kbench-fuzz-" + std::to_string(::getpid()) + ".sock").c_str()); });
    std::thread([this] {
      for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(fd)) serve(fd);
    }).detach();
  }
  // `to`: within the line of a request. `status`: of the container.
  void give(std::string_view bytes, std::string_view to, std::string_view status = "exited") {
    const std::scoped_lock lock(mutex_);
    bytes_ = bytes;
    to_ = to;
    status_ = status;
    creations_ = 0;
  }
  // Of the container, since bytes were given last.
  std::string status() {
    const std::scoped_lock lock(mutex_);
    return status_;
  }
  int creations() {
    const std::scoped_lock lock(mutex_);
    return creations_;
  }
  // The answer that was given, as the transport reads it.
  HttpReply given() {
    HttpRequest request;
    request.method = "GET";
    request.path = "/given";
    return exchange(path_, milliseconds(5000), request);
  }
  const std::string& path() const { return path_; }

 private:
  void serve(int fd) {
    std::string request;
    char block[65536];
    for (std::size_t whole = request.npos; request.size() < whole;) {
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got <= 0) return;
      request.append(block, static_cast<std::size_t>(got));
      const std::size_t head = request.find("\r\n\r\n"), length = request.find("Content-Length: ");
      if (head == request.npos) continue;
      whole = head + 4;
      // A build's context is read after its answer.
      if (length < head && request.starts_with("POST ") && request.find("/create?") < request.find("\r\n"))
        whole += std::strtoul(request.c_str() + length + 16, nullptr, 10);
    }
    const std::string line = request.substr(0, request.find("\r\n"));
    const std::string answer = answer_to(line, request.substr(request.find("\r\n\r\n") + 4));
    for (std::string_view rest = answer; !rest.empty();) {
      const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    // What the client still sends (a build's context) is read, else closing would take the answer from its hands.
    ::shutdown(fd, SHUT_WR);
    while (::recv(fd, block, sizeof block, 0) > 0) {
    }
  }
  std::string answer_to(const std::string& line, const std::string& body) {
    const auto asks = [&](std::string_view what) { return line.find(what) != line.npos; };
    const std::scoped_lock lock(mutex_);
    if (asks("/create?")) {
      created_ = Json::parse(body);
      ++creations_;
    }
    if (asks("DELETE ")) status_ = "";
    if (asks(to_) || asks(" /given ")) return bytes_;
    if (asks("/_ping ")) return "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 0\r\n\r\n";
    if (asks("/create?")) return json_answer(201, {{"Id", "x"}, {"Warnings", Json::array()}});
    if (asks("/wait?")) return json_answer(200, {{"StatusCode", 1}});
    if (asks("/containers/") && asks("/json ")) {
      if (status_.empty()) return json_answer(404, {{"message", "No such container"}});
      return json_answer(200, {{"Id", "x"},
                               {"Image", kImage},
                               {"Config", created_},
                               {"HostConfig", created_.value("HostConfig", Json())},
                               {"State", {{"Status", status_}, {"ExitCode", kExitCode}}}});
    }
    if (asks("GET ")) return json_answer(200, Json::object());
    return "HTTP/1.1 204 No Content\r\n\r\n";
  }

  std::string path_;
  int listener_ = -1;
  std::mutex mutex_;
  std::string bytes_, to_, status_;
  int creations_ = 0;
  Json created_ = Json::object();
};

Options quick(const std::string& socket) {
  Options options;
  options.socket = socket;
  options.reply_bytes_max = options.build_message_bytes_max = options.build_log_bytes_max = options.log_bytes_max =
      4096;
  options.build_timeout = milliseconds(5000);
  options.backoff_min = options.backoff_max = milliseconds(1);
  options.start_timeout = milliseconds(200);  // how long a start without an answer is asked about
  options.remove_timeout = milliseconds(50);  // how often a removal is tried again
  return options;
}

ContainerSpec spec() {
  ContainerSpec spec;
  spec.name = "kbench-f";
  spec.image = kImage;
  spec.command = {"/bin/true"};
  spec.user = "1000:1000";
  spec.labels = {{"kbench.owner", "me"}};
  spec.memory_bytes = spec.shm_bytes = 1 << 20;
  spec.pids_max = 64;
  spec.ulimits = {{"nofile", 1024}};
  spec.mounts = {{"/here", "/in", true}};
  return spec;
}

// A container is made as it was asked for or not at all: what is read back is looked at a second time here.
void create_read_back(Replies& replies, Engine& engine) {
  try {
    require(engine.create(spec()) == "x", "the id of the creation");
  } catch (const EngineError& error) {
    const bool differs = std::string_view(error.what()).find(" did not keep ") != std::string_view::npos;
    require(!differs || replies.status().empty(), "what is not as it was asked for is removed");
    throw;
  }
  const Json kept = Json::parse(replies.given().body).at("HostConfig");
  const auto is = [&](const char* field, const Json& value) { return kept.at(field) == value; };
  require(is("NetworkMode", "none") && is("Privileged", false) && is("ReadonlyRootfs", true), "shut in");
  require(is("CapDrop", {"ALL"}) && kept.value("CapAdd", Json::array()).empty(), "without capabilities");
  require(is("SecurityOpt", {"no-new-privileges:true"}) && is("IpcMode", "private"), "without new privileges");
  require(is("Memory", 1 << 20) && is("MemorySwap", 1 << 20) && is("PidsLimit", 64), "within its limits");
  require(kept.at("Mounts").size() == 1 && kept.at("Mounts")[0].at("ReadOnly") == true, "with its mounts");
  require(kept.value("Devices", Json()).empty() && kept.value("DeviceRequests", Json()).empty(), "without devices");
}

// Whatever start and wait are answered, how a container has ended is what its inspection says.
void start_and_wait(Engine& engine) {
  Run run = engine.start("x");
  const auto ended = run.wait(milliseconds(5000));
  require(ended && ended->exit_code == kExitCode, "the end as it is inspected");
}

void ask_about(Replies& replies, Options options, const char* podman) {
  Engine engine(std::move(options));
  const Info info = engine.info();
  require(info.api >= kApiFloor && info.api <= kApiCap, "a version that both speak");
  require(!info.podman || replies.given().body.find(podman) != std::string::npos, "podman says that it is");
}

void call(unsigned which, std::string_view bytes, Replies& replies, Engine& engine) {
  constexpr std::string_view kTo[16] = {"/build?",         "/logs?",        "/x/json ",  "/containers/json?",
                                        "/images/x/json ", "/images/json?", "/info ",    "/events?",
                                        "/x/json ",        "/create?",      "/start ",   "/wait?",
                                        "/kill ",          "DELETE ",       "/version ", "/_ping "};
  const bool creates = which == 8 || which == 9;
  replies.give(bytes, kTo[which], creates ? "created" : "exited");
  switch (which) {
    case 0:
      engine.build({{{"Dockerfile", "FROM x\n"}}, {"a:b"}, {}, {}, "none"});
      break;
    case 1:
      require(engine.logs("x").size() <= 3 * 4096 + 64, "a log within its limit");
      break;
    case 2:
      if (const auto container = engine.inspect("x")) require(!container->id.empty(), "a container has an id");
      break;
    case 3:
      engine.containers("a");
      break;
    case 4:
      if (const auto image = engine.image("x")) require(!image->id.empty(), "an image has an id");
      break;
    case 5:
      engine.images("a");
      break;
    case 6:
      engine.info();
      break;
    case 7:
      engine.events("a", [] {}, [](const Event&) {}, {});
      break;
    case 8:
      create_read_back(replies, engine);
      break;
    case 9:
      require(!engine.create(spec()).empty(), "a container has an id");
      break;
    case 10:
    case 11:
      start_and_wait(engine);
      break;
    case 12: {
      engine.kill("x");
      const int status = replies.given().status;
      require(status == 204 || status == 404 || status == 409, "killed, or not there to be");
      break;
    }
    case 13: {
      engine.remove("x");
      const int status = replies.given().status;
      require(status == 204 || status == 404 || status == 409 || status == 500, "removed, or gone when looked for");
      break;
    }
    default:
      ask_about(replies, engine.options(), "Podman Engine");
  }
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  static Replies& replies = *new Replies;
  static Engine& engine = *new Engine(quick(replies.path()));
  Input input(data, size);
  const unsigned which = input.byte() % 16;
  try {
    call(which, input.rest(), replies, engine);
  } catch (const EngineError& error) {
    require(sanitised(error.what()) == error.what(), "an error that may be shown");
  }
  require(replies.creations() <= 3, "a creation is tried three times");
  return 0;
}
