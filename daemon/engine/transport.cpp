#include "daemon/engine/transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <memory>
#include <mutex>

namespace kbench::engine {

namespace {

using Kind = EngineError::Kind;

struct EasyFree {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiFree {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// What libcurl's callbacks work on. They must not throw through C; the first exception is kept and comes out after the
// transfer.
struct Transfer {
  const HttpRequest& request;
  HttpReply reply;
  std::size_t sent = 0;
  bool head_whole = false;  // of the final answer: libcurl takes a head that was cut for a whole one
  std::exception_ptr thrown;
  bool accepted() const { return reply.status >= 200 && reply.status < 300; }
};

template <class Body>
std::size_t guarded(Transfer& transfer, std::size_t count, Body body) {
  try {
    body();
    return count;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;  // ends the transfer, unless count is 0 too
  }
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  std::string_view line(data, size * count);
  return guarded(transfer, line.size(), [&] {
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {  // a new status line: what came before was informational
      transfer.reply.headers.clear();
      transfer.head_whole = false;
      const std::size_t space = line.find(' ');
      transfer.reply.status = space == line.npos ? 0 : std::atoi(std::string(line.substr(space + 1)).c_str());
    } else if (line.empty()) {
      transfer.head_whole = true;
      if (transfer.accepted() && transfer.request.on_accepted) transfer.request.on_accepted();
    } else if (const std::size_t colon = line.find(':'); colon != line.npos && transfer.reply.headers.size() < 100) {
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::tolower(c)); });
      line.remove_prefix(colon + 1);
      while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
      transfer.reply.headers[name] = line;
    }
  });
}

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view bytes(data, size * count);
  return guarded(transfer, bytes.size(), [&] {
    if (transfer.accepted() && transfer.request.on_body) return transfer.request.on_body(bytes);
    if (transfer.reply.body.size() + bytes.size() > transfer.request.reply_bytes_max)
      throw EngineError(Kind::failed, transfer.reply.status, transfer.request.path + ": the answer is too long");
    transfer.reply.body.append(bytes);
  });
}

std::size_t on_read(char* to, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view rest = transfer.request.body.substr(transfer.sent);
  const std::size_t bytes = std::min(rest.size(), size * count);
  rest.copy(to, bytes);
  transfer.sent += bytes;
  return bytes;
}

void global_init() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

void prepare(CURL* easy, const std::string& socket, milliseconds connect_timeout, Transfer& transfer,
             curl_slist* headers) {
  const HttpRequest& request = transfer.request;
  // The Engine wants a syntactically valid Host; "docker" is what its own client sends.
  curl_easy_setopt(easy, CURLOPT_URL, ("http://docker" + request.path).c_str());
  curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_timeout.count()));
  if (request.timeout.count() > 0)
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
}

// Runs the transfer to its end; the stop token wakes it. nullopt: stopped.
std::optional<CURLcode> perform(CURLM* multi, CURL* easy, const std::stop_token& stop) {
  if (curl_multi_add_handle(multi, easy) != CURLM_OK) return CURLE_FAILED_INIT;
  std::optional<CURLcode> result;
  {
    std::stop_callback wake(stop, [multi] { curl_multi_wakeup(multi); });  // the only call allowed from another thread
    while (!stop.stop_requested()) {
      int running = 0;
      if (curl_multi_perform(multi, &running) != CURLM_OK) {
        result = CURLE_FAILED_INIT;
        break;
      }
      int left = 0;
      if (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
        result = message->data.result;
        break;
      }
      curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
  }
  curl_multi_remove_handle(multi, easy);
  return result;
}

}  // namespace

HttpReply exchange(const std::string& socket, milliseconds connect_timeout, const HttpRequest& request) {
  global_init();
  Transfer transfer{request, {}, 0, false, {}};
  std::unique_ptr<CURLM, MultiFree> multi(curl_multi_init());
  std::unique_ptr<CURL, EasyFree> easy(curl_easy_init());
  std::unique_ptr<curl_slist, ListFree> headers(curl_slist_append(nullptr, "Expect:"));
  if (!multi || !easy || !headers) throw EngineError(Kind::failed, 0, "libcurl could not be set up");
  if (!request.content_type.empty())
    curl_slist_append(headers.get(), ("Content-Type: " + request.content_type).c_str());
  // A fresh connection each time: on a unix socket it costs microseconds, and none can be stale after a restart of the
  // Engine.
  prepare(easy.get(), socket, connect_timeout, transfer, headers.get());
  const std::optional<CURLcode> result = perform(multi.get(), easy.get(), request.stop);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  const std::string what = request.method + " " + request.path.substr(0, request.path.find('?'));
  if (!result) throw EngineError(Kind::cancelled, 0, what + ": cancelled");
  if (*result == CURLE_OPERATION_TIMEDOUT) throw EngineError(Kind::timeout, 0, what + ": no answer in time");
  // An error answer that came before the whole upload was read is an answer.
  const bool early =
      transfer.reply.status >= 400 && (*result == CURLE_SEND_ERROR || *result == CURLE_ABORTED_BY_CALLBACK);
  if (*result != CURLE_OK && !early)
    throw EngineError(Kind::unreachable, transfer.reply.status,
                      what + " at " + socket + ": " + curl_easy_strerror(*result));
  if (!transfer.head_whole)
    throw EngineError(Kind::unreachable, transfer.reply.status, what + " at " + socket + ": the answer was cut");
  return std::move(transfer.reply);
}

std::string url_encoded(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    }
  }
  return out;
}

}  // namespace kbench::engine
