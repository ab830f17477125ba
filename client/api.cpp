// libcurl, one handle a call: a call takes milliseconds at least, a connection on the same host microseconds.
#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "client/client.h"
#include "client/json.h"

namespace kbench::client {
namespace {

using namespace std::chrono_literals;
constexpr long kConnectMs = 5'000, kCallMs = 120'000;
constexpr long kSilenceSeconds = 60;  // of a stream: four heartbeats
constexpr std::size_t kReplyBytesMax = 64 << 20;

struct Handle {
  CURL* curl = curl_easy_init();
  curl_slist* headers = nullptr;
  ~Handle() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
  }
};

struct Call {  // what the callbacks of one call see
  Reply reply;
  std::function<bool(std::string_view)> sink;  // of a stream; else the body is kept
  CURL* curl = nullptr;
  bool stopped = false;  // by the sink
  std::exception_ptr fault;
};

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& call = *static_cast<Call*>(user);
  const std::string_view text(bytes, count);
  if (text.starts_with("HTTP/")) call.reply.headers.clear();  // a 100 Continue came before
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(text.substr(0, colon)), value(text.substr(colon + 1));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  value.erase(0, value.find_first_not_of(" \t"));
  value.erase(value.find_last_not_of(" \t\r\n") + 1);
  call.reply.headers[name] = value;
  return count;
}

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* user) {
  auto& call = *static_cast<Call*>(user);
  long status = 0;
  curl_easy_getinfo(call.curl, CURLINFO_RESPONSE_CODE, &status);
  if (!call.sink || status != 200) {
    if (call.reply.body.size() + count > kReplyBytesMax) return 0;
    call.reply.body.append(bytes, count);
    return count;
  }
  try {
    call.stopped = !call.sink({bytes, count});
  } catch (...) {
    call.fault = std::current_exception();  // it must not pass through C
    call.stopped = true;
  }
  return call.stopped ? 0 : count;
}

[[noreturn]] void refused(const Reply& reply) {
  std::string text;
  try {
    const auto problem = parsed(reply.body);
    text = problem.at("title").get<std::string>();
    const auto more = [&](const nlohmann::json& fault) {
      std::string line;
      if (fault.contains("field")) line += fault["field"].get<std::string>() + ": ";
      return line + fault.value("title", "") + ". " + fault.value("detail", "");
    };
    if (problem.contains("errors")) {
      text = "refused";
      for (const auto& fault : problem["errors"]) text += "\n  " + more(fault);
    } else {
      text = more(problem);
    }
  } catch (const std::exception&) {
    text = "status " + std::to_string(reply.status) + ", which is not of kbenchd; is the URL right?";
  }
  throw Refused(harmless(text), reply.body);
}

}  // namespace

std::chrono::milliseconds pause_before(int tries, const std::string& retry_after) {
  const auto own = std::min(200ms * (1 << std::clamp(tries - 1, 0, 10)), std::chrono::milliseconds(5'000));
  std::chrono::milliseconds theirs{0};
  if (!retry_after.empty() && retry_after.size() < 6 &&
      retry_after.find_first_not_of("0123456789") == std::string::npos) {
    theirs = std::chrono::seconds(std::stoi(retry_after));
  }
  return std::min(std::max(own, theirs), std::chrono::milliseconds(30'000));
}

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out.append("%").append(1, "0123456789ABCDEF"[byte >> 4]).append(1, "0123456789ABCDEF"[byte & 15]);
    }
  }
  return out;
}

Api::Api(Options options) : options_(std::move(options)) {
  static const auto global = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (global != CURLE_OK) throw std::runtime_error("libcurl cannot be used");
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  char *scheme = nullptr, *host = nullptr;
  if (curl_url_set(url.get(), CURLUPART_URL, options_.url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK) {
    curl_free(scheme);
    throw UsageError("not a URL: " + options_.url + "; it looks like http://127.0.0.1:8700");
  }
  const std::string name = host, way = scheme;
  curl_free(scheme);
  curl_free(host);
  if (way != "http" && way != "https") throw UsageError("not http or https: " + options_.url);
  in_addr address{};  // a name may begin with 127., too
  const bool is_address = inet_pton(AF_INET, name.c_str(), &address) == 1;
  loopback_ = name == "localhost" || name == "[::1]" || (is_address && ntohl(address.s_addr) >> 24 == 127);
}

namespace {

// Runs one call; false when there was no whole answer (why says so).
bool perform(const Options& options, bool loopback, const std::string& method, const std::string& path,
             const std::string& body, const std::map<std::string, std::string>& headers, Call& call, std::string& why) {
  Handle handle;
  if (handle.curl == nullptr) throw std::runtime_error("libcurl cannot be used");
  call.curl = handle.curl;
  auto base = options.url;
  while (base.ends_with('/')) base.pop_back();
  const auto url = base + path;
  const auto add = [&](const std::string& line) { handle.headers = curl_slist_append(handle.headers, line.c_str()); };
  if (!options.token.empty()) add("Authorization: Bearer " + options.token);
  for (const auto& [name, value] : headers) add(name + ": " + value);
  add("Expect:");  // our bodies are small; asking first costs a round trip
  auto* curl = handle.curl;
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, handle.headers);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &call);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &call);
  if (loopback) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  if (!body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  if (call.sink) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
  } else {
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, kCallMs);
  }
  const auto code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &call.reply.status);
  call.curl = nullptr;
  if (call.fault) std::rethrow_exception(call.fault);
  if (code == CURLE_OK || call.stopped) return true;
  why = reason[0] != '\0' ? reason : curl_easy_strerror(code);
  return false;
}

}  // namespace

Reply Api::ask(const std::string& method, const std::string& path, const std::string& body,
               const std::map<std::string, std::string>& headers, bool may_repeat) {
  const auto give_up = std::chrono::steady_clock::now() + options_.patience;
  for (int tries = 1;; ++tries) {
    Call call;
    std::string why;
    const bool whole = perform(options_, loopback_, method, path, body, headers, call, why);
    const auto status = call.reply.status;
    // 409 with Retry-After: our own first try is still being handled.
    const bool later =
        !whole || status == 503 || status == 502 || (status == 409 && call.reply.headers.count("retry-after") != 0);
    if (whole && status >= 200 && status < 300) return call.reply;
    if (whole && !later && status < 500) refused(call.reply);
    const auto pause = pause_before(tries, call.reply.headers["retry-after"]);
    if (!may_repeat || !later || std::chrono::steady_clock::now() + pause > give_up) {
      if (!whole) throw Unreachable(options_.url + ": " + why + "; is kbenchd running, and KBENCH_URL right?");
      std::string text = "status " + std::to_string(status);
      try {
        refused(call.reply);
      } catch (const Refused& fault) {
        text = fault.what();
      }
      throw Unreachable(options_.url + ": " + text, call.reply.body);
    }
    std::this_thread::sleep_for(pause);
  }
}

bool Api::follow(const std::string& path, const std::string& last_event_id,
                 const std::function<bool(const Event&)>& on_event) {
  EventParser parser;
  Call call;
  bool wanted = true;
  call.sink = [&](std::string_view bytes) {
    parser.feed(bytes, [&](const Event& event) { wanted = wanted && on_event(event); });
    return wanted;
  };
  std::map<std::string, std::string> headers{{"Accept", "text/event-stream"}};
  if (!last_event_id.empty()) headers["Last-Event-ID"] = last_event_id;
  std::string why;
  const bool whole = perform(options_, loopback_, "GET", path, "", headers, call, why);
  if (whole && call.reply.status >= 400 && call.reply.status < 500) refused(call.reply);
  return whole && (call.reply.status == 200 || call.reply.status == 204);
}

}  // namespace kbench::client
