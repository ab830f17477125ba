// kbench doctor: looks at everything that a grading needs on this host, and says the fix for what is amiss. Changes
// nothing.
#include <curl/curl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "client/client.h"
#include "client/json.h"

namespace kbench::client {
namespace {

using nlohmann::json;

enum class Level : std::uint8_t { ok, note, warn, fail };
struct Finding {
  Level level;
  std::string part, text, fix;  // the fix is only empty where all is well
};
using Findings = std::vector<Finding>;

constexpr std::uint64_t kDiskBytesWanted = 20ULL << 30;
constexpr int kApiMinorMin = 41;
constexpr char kUsualSocket[] = "/var/run/docker.sock";

// ---- the Engine

// Where scripts/engine looks, in its order: DOCKER_HOST, else the usual place; then the Engine that it starts itself.
std::vector<std::string> engine_sockets() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const auto host = variable("DOCKER_HOST"), state = variable("KBENCH_STATE");
  return {host.starts_with("unix://") ? host.substr(7) : kUsualSocket,
          (state.empty() ? variable("HOME") + "/.local/state/kbench" : state) + "/engine/docker.sock"};
}

std::size_t keep(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& body = *static_cast<std::string*>(user);
  if (body.size() + count > 8 << 20) return 0;
  body.append(bytes, count);
  return count;
}

// Status and body; status 0: `body` says why there is no answer.
std::pair<long, std::string> engine_get(const std::string& socket, const std::string& path) {
  auto* curl = curl_easy_init();
  std::string body;
  const auto url = "http://docker" + path;
  curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10'000L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  const auto code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(curl);
  if (code != CURLE_OK) return {0, curl_easy_strerror(code)};
  return {status, body};
}

void look_at_images(Findings& found, const std::string& socket, bool gpus) {
  const struct {
    std::string name;
    bool needed;
    const char* fix;
  } images[] = {
      {"kbench/base:cpu", true, "scripts/build-base"},
      {"kbench/base:cuda", gpus, "scripts/build-base cuda; where no registry is reached, scripts/gpu/host makes it"}};
  for (const auto& image : images) {
    const auto [status, body] = engine_get(socket, "/images/" + image.name + "/json");
    if (status == 200) {
      found.push_back({Level::ok, "image", image.name + " is there", ""});
    } else if (status == 404) {
      found.push_back({image.needed ? Level::fail : Level::note, "image", image.name + " is not there",
                       image.needed ? image.fix : "none is needed: no GPU here"});
    } else {
      found.push_back({Level::warn, "image", image.name + ": the Engine answers " + std::to_string(status),
                       "see the Engine's log"});
    }
  }
}

// What the kernel must be able to limit. The Engine's own warnings name more, which kbench does not use.
void look_at_limits(Findings& found, const json& info) {
  const struct {
    const char *field, *text, *fix;
  } limits[] = {{"MemoryLimit", "memory", "boot with cgroup_enable=memory"},
                {"SwapLimit", "swap", "boot with swapaccount=1, or turn swap off (swapoff -a)"},
                {"PidsLimit", "the number of processes", "mount the cgroup controller pids, and start the Engine anew"},
                {"CPUSet", "which processors", "mount the cgroup controller cpuset, and start the Engine anew"}};
  for (const auto& limit : limits) {
    if (info.value(limit.field, true)) continue;
    found.push_back({Level::warn, "limits",
                     std::string("the Engine cannot limit ") + limit.text + " here: submissions may take more",
                     limit.fix});
  }
}

struct Engine {
  std::string socket;
  json info = json::object();  // its description of itself; empty when it cannot be had
};

Engine look_at_engine(Findings& found) {
  const auto sockets = engine_sockets();
  const auto answers = [](const std::string& socket) { return engine_get(socket, "/_ping").first == 200; };
  const auto at = std::find_if(sockets.begin(), sockets.end(), answers);
  Engine engine{at != sockets.end() ? *at : sockets.front()};
  if (at == sockets.end() && ::access(engine.socket.c_str(), F_OK) != 0) {
    found.push_back({Level::fail, "engine", "no Docker Engine at " + sockets[0] + " nor " + sockets[1],
                     "scripts/engine up, or set DOCKER_HOST=unix:///path"});
    return engine;
  }
  if (::access(engine.socket.c_str(), R_OK | W_OK) != 0) {
    found.push_back({Level::fail, "engine", "this user may not use " + engine.socket,
                     "run as root, or add the user to the group docker"});
    return engine;
  }
  const auto [status, body] = engine_get(engine.socket, "/version");
  const auto version = json::parse(body, nullptr, false);
  if (status != 200 || !version.is_object()) {
    found.push_back({Level::fail, "engine",
                     engine.socket + " does not answer: " + (status == 0 ? body : std::to_string(status)),
                     "scripts/engine up; see the Engine's log"});
    return engine;
  }
  const auto api = version.value("ApiVersion", "");
  const auto dot = api.find('.');
  const bool new_enough =
      api.starts_with("1.") && dot != std::string::npos && std::atoi(api.c_str() + dot + 1) >= kApiMinorMin;
  const auto text = "Docker Engine " + version.value("Version", "?") + ", API " + api + ", at " + engine.socket;
  found.push_back(
      {new_enough ? Level::ok : Level::fail, "engine", text, new_enough ? "" : "install Docker Engine 20.10 or newer"});
  if (at != sockets.begin())
    found.push_back({Level::note, "engine", "docker and kbenchd look for it at " + sockets.front() + " unless told",
                     "export DOCKER_HOST=unix://" + engine.socket + "; for kbenchd: socket in [engine]"});
  const auto info = json::parse(engine_get(engine.socket, "/info").second, nullptr, false);
  if (!info.is_object()) {
    found.push_back({Level::warn, "engine", "it does not describe itself (GET /info)", "see the Engine's log"});
    return engine;
  }
  engine.info = info;
  look_at_limits(found, info);
  return engine;
}

// ---- GPUs

std::string output_of(const char* command) {
  std::string out;
  FILE* pipe = ::popen(command, "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> block{};
  while (const auto got = std::fread(block.data(), 1, block.size(), pipe)) {
    if (out.size() < 1 << 20) out.append(block.data(), got);
  }
  return ::pclose(pipe) == 0 ? out : "";
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return out;
}

// How many GPUs.
int look_at_gpus(Findings& found) {
  const auto text = output_of(
      "nvidia-smi --query-gpu=index,name,driver_version,persistence_mode,clocks.sm,clocks.max.sm,temperature.gpu "
      "--format=csv,noheader 2>/dev/null");
  const auto lines = split(text, "\n");
  if (lines.empty()) {
    found.push_back({Level::note, "gpu", "no NVIDIA driver or GPU (nvidia-smi has nothing to say): the device cpu only",
                     "none is needed for the device cpu; for a GPU, install NVIDIA's driver"});
    return 0;
  }
  for (const auto& line : lines) {
    const auto f = split(line, ", ");
    if (f.size() < 7) continue;
    found.push_back(
        {Level::ok, "gpu",
         "GPU " + f[0] + ": " + f[1] + ", driver " + f[2] + ", SM clock " + f[4] + " of " + f[5] + ", " + f[6] + " °C",
         ""});
    if (f[3] != "Enabled") {
      found.push_back(
          {Level::warn, "clocks",
           "GPU " + f[0] + ": persistence mode is off; each grading wakes the driver and finds other clocks",
           "nvidia-smi -pm 1"});
    }
  }
  return static_cast<int>(lines.size());
}

void look_at_toolkit(Findings& found, const json& info) {
  const bool runtime = info.value("Runtimes", json::object()).contains("nvidia");
  const bool cdi = !info.value("CDISpecDirs", json::array()).is_null() && ::access("/etc/cdi", F_OK) == 0;
  if (runtime || cdi) {
    found.push_back(
        {Level::ok, "toolkit", runtime ? "the Engine has the nvidia runtime" : "CDI specifications in /etc/cdi", ""});
  } else {
    found.push_back({Level::warn, "toolkit",
                     "neither the nvidia runtime nor CDI: containers get GPUs by device nodes only",
                     "install nvidia-container-toolkit and run nvidia-ctk runtime configure, or configure the attach "
                     "mode devices"});
  }
}

// ---- disk, files

void look_at_disk(Findings& found, const std::string& what, const std::string& path) {
  struct statvfs facts{};
  if (::statvfs(path.c_str(), &facts) != 0) return;
  const auto free = static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
  const auto text = std::to_string(free >> 30) + " GiB free for " + what + " (" + path + ")";
  const bool enough = free >= kDiskBytesWanted;
  found.push_back({enough ? Level::ok : Level::warn, "disk", text,
                   enough ? "" : "free some: images of the CUDA toolchain take 20 GiB"});
}

void look_at_files(Findings& found, const std::string& folder) {
  struct stat facts{};
  if (::stat(folder.c_str(), &facts) != 0) {
    found.push_back({Level::note, "files", folder + " is not there; kbenchd makes it at its first start",
                     "start kbenchd, or name its data folder with --data"});
    return;
  }
  const auto token = folder + "/token";
  const auto owner = facts.st_uid;
  if (::stat(token.c_str(), &facts) != 0) {
    found.push_back({Level::note, "files", token + ": " + std::strerror(errno), "set KBENCH_TOKEN, or --token-file"});
  } else if ((facts.st_mode & 077) != 0) {
    found.push_back(
        {Level::fail, "files", token + " may be read by others; kbenchd will not start", "chmod 600 " + token});
  } else if (facts.st_uid != owner) {
    found.push_back({Level::fail, "files",
                     token + " belongs to the user " + std::to_string(facts.st_uid) + ", its folder to " +
                         std::to_string(owner) + "; kbenchd only takes a token of its own user",
                     "chown " + std::to_string(owner) + " " + token});
  } else if (::access(token.c_str(), R_OK) != 0) {
    found.push_back({Level::note, "files", token + " cannot be read by this user", "set KBENCH_TOKEN"});
  } else {
    found.push_back({Level::ok, "files", token + " is there and private", ""});
  }
  look_at_disk(found, "kbenchd", folder);
}

// ---- the server

// What mends a part that /readyz complains of; its cause has more.
std::string fix_of(const std::string& part) {
  static const std::map<std::string, std::string> fixes = {
      {"store", "free some disk where store.path is, and let kbenchd write there"},
      {"queue", "free some disk where store.path is, and let kbenchd write there"},
      {"source", "free some disk where store.path is, and let kbenchd write there"},
      {"tasks", "set folder in [tasks] of kbenchd's configuration, and start it anew"},
      {"slots", "set cpu_slots in [grader], or mend what kbench gpus says of the GPUs, and start kbenchd anew"},
      {"engine", "scripts/engine up, or what its findings below say; kbenchd looks where socket in [engine] says"},
      {"image", "scripts/build-base; for the device cuda scripts/build-base cuda"},
      {"disk", "free some disk, or lower disk_free_min in [grader]"}};
  const auto known = fixes.find(part);
  return known != fixes.end() ? known->second : "see kbenchd's log";
}

// What the server says of itself in the answer that it is not ready.
void tell_not_ready(const Unreachable& answer, Findings& found) {
  try {
    const auto body = parsed(answer.body);
    for (const auto& check : body.at("checks"))
      if (const auto part = check.value("part", ""); !check.value("ok", true))
        found.push_back({Level::fail, "server", "not ready: " + part + ": " + check.value("cause", ""), fix_of(part)});
  } catch (const std::exception&) {  // no answer of a kbenchd
    found.push_back({Level::fail, "server", answer.what(), "see kbenchd's log"});
  }
}

void look_at_server(Findings& found, Options options) {
  options.patience = std::chrono::milliseconds(0);
  Api api(options);
  try {
    const auto health = parsed(api.ask("GET", "/healthz", "", {}, false).body);
    found.push_back({Level::ok, "server", "kbenchd " + health.value("version", "?") + " at " + options.url, ""});
  } catch (const std::exception& e) {
    found.push_back({Level::fail, "server", e.what(), "start kbenchd, or set KBENCH_URL"});
    return;
  }
  try {
    api.ask("GET", "/api/v1/gpus", "", {}, false);
    found.push_back({Level::ok, "server", "the token is accepted", ""});
  } catch (const Refused&) {
    found.push_back({Level::fail, "server", options.token.empty() ? "no token" : "the token is not accepted",
                     "set KBENCH_TOKEN to what the server's token file holds"});
  } catch (const Unreachable& e) {
    found.push_back({Level::fail, "server", e.what(), "see kbenchd's log"});
  }
  try {
    api.ask("GET", "/readyz", "", {}, false);
    found.push_back({Level::ok, "server", "ready to grade", ""});
  } catch (const Unreachable& e) {
    tell_not_ready(e, found);
  } catch (const std::exception& e) {
    found.push_back({Level::fail, "server", e.what(), "see kbenchd's log; is KBENCH_URL that of a kbenchd?"});
  }
}

const char* name_of(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::note:
      return "note";
    case Level::warn:
      return "warn";
    case Level::fail:
      return "FAIL";
  }
  return "";
}

}  // namespace

int doctor(const std::optional<Options>& server, const std::string& data_folder, bool as_json) {
  Findings found;
  if (server) look_at_server(found, *server);
  const auto engine = look_at_engine(found);
  const int gpus = look_at_gpus(found);
  if (!engine.info.empty()) {
    look_at_images(found, engine.socket, gpus > 0);
    if (gpus > 0) look_at_toolkit(found, engine.info);
    look_at_disk(found, "the Engine", engine.info.value("DockerRootDir", "/var/lib/docker"));
  }
  look_at_files(found, data_folder);
  bool good = true;
  auto all = json::array();
  for (const auto& f : found) {
    good = good && f.level != Level::fail;
    if (as_json) {
      all.push_back({{"level", name_of(f.level)}, {"part", f.part}, {"text", f.text}, {"fix", f.fix}});
      continue;
    }
    std::printf("%-4s  %-8s  %s\n", name_of(f.level), f.part.c_str(), harmless(f.text).c_str());
    if (!f.fix.empty()) std::printf("                fix: %s\n", harmless(f.fix).c_str());
  }
  if (as_json) std::printf("%s\n", line_of(all).c_str());
  return good ? kOk : kNotCorrect;
}

}  // namespace kbench::client
