// An HTTP server on a unix socket whose answers are scripted down to the byte: cut, delayed, split, dropped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace kbench::test {

struct FakeRequest {
  std::string method, path, version;                  // "/v1.41/x?y" -> path "/x", version "1.41"
  std::map<std::string, std::string> query, headers;  // decoded; names of headers in lower case
  std::string body;
};

// Writes to the client and tells whether it is still there.
class FakeWire {
 public:
  explicit FakeWire(int fd, std::optional<std::size_t> bytes_max = {}) : fd_(fd), left_(bytes_max) {}
  bool send(std::string_view bytes);
  bool gone() const;

 private:
  int fd_;
  std::optional<std::size_t> left_;
};

struct FakeReply {
  int status = 200;
  std::string body{}, content_type = "application/json";
  std::map<std::string, std::string> headers{};
  std::size_t chunk_bytes = 0;             // 0: Content-Length; else chunks of that size
  std::optional<std::size_t> cut_after{};  // the connection ends after so many bytes of the body
  std::optional<std::size_t> cut_whole{};  // the connection ends after so many bytes of the answer, its head included
  std::chrono::milliseconds delay{0};      // before the answer
  bool drop = false;                       // no answer at all
  bool unread_body = false;                // answers without reading the request's body, then closes
  // After the headers (chunked): sends what it likes; the answer ends properly when it returns true, is cut when false.
  std::function<bool(FakeWire&, const std::function<void(std::string_view)>& chunk)> stream{};
};

// How long the answer is on the wire, its head included; not of a stream.
std::size_t whole_bytes(const std::string& method, const FakeReply& reply);

class FakeHttp {
 public:
  using Handler = std::function<FakeReply(const FakeRequest&)>;
  explicit FakeHttp(std::string socket);
  ~FakeHttp();
  void otherwise(Handler handler);  // what no script answers
  // The next `times` requests whose "METHOD /path" starts with `what`; tried in the order of scripting.
  void script(const std::string& what, FakeReply reply, int times = 1);
  void script(const std::string& what, Handler handler, int times = 1);
  void down();  // the socket is gone, connections break
  void up();
  std::vector<std::string> requests() const;  // "METHOD /path" in order of arrival
  int count(const std::string& what) const;   // of requests that start with it
  const std::string& socket() const { return socket_; }

 private:
  struct Script {
    std::string what;
    Handler handler;
    int left;
    bool early;
  };
  struct Connection {
    int fd;
    std::thread thread;
    bool done = false;
  };
  void accept_all();
  void serve(int fd);
  FakeReply answer(const FakeRequest& request);

  std::string socket_;
  Handler otherwise_;
  mutable std::mutex mutex_;
  std::list<Script> scripts_;
  std::vector<std::string> requests_;
  std::list<Connection> connections_;
  int listener_ = -1;
  std::thread acceptor_;
};

}  // namespace kbench::test
