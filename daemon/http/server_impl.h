// Inside of the server: what server.cpp (listener, threads, stop) and session.cpp (one connection's requests) share. No
// other file includes this: Asio takes long to compile.
//
// Each I/O thread has an io_context of its own and a connection lives on one of them, so a connection's state needs no
// lock. One sweep a quarter of a second enforces all deadlines: a timer per operation would cost more than the
// operations do.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <condition_variable>
#include <limits>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "daemon/http/router.h"

namespace kbench::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;
template <class T>
using Task = asio::awaitable<T, Executor>;
using Clock = std::chrono::steady_clock;

inline constexpr asio::use_awaitable_t<Executor> kAwait;
inline constexpr auto kTry = asio::as_tuple(kAwait);  // yields (error_code, …) instead of throwing
inline constexpr auto kNever = Clock::time_point::max();
inline constexpr auto kSweep = std::chrono::milliseconds(250);
inline constexpr auto kAcceptPause = std::chrono::milliseconds(100);
inline constexpr auto kLinger = std::chrono::milliseconds(1000);
inline constexpr std::size_t kLingerBytesMax = 4 * 1024 * 1024;
inline constexpr std::size_t kIdleBufferBytesMax = 4096;
// An answer no longer than that counts as part of its connection: /healthz is answered whatever others do not take.
inline constexpr std::size_t kSmallAnswerBytes = 4096;
inline constexpr std::size_t kReadBytesMax = 65'536;  // at a time
inline constexpr int kRefusalsMax = 64;  // connections being told 503 at a time; more are closed without a word
inline constexpr std::string_view kNoBody;

// A share of a counter, given back at the end of its scope.
template <class T>
struct Share {
  std::atomic<T>& total;
  T amount = 0;
  bool grow(T more, T max) {
    amount += more;
    if (total.fetch_add(more) + more <= max) return true;
    release();
    return false;
  }
  void release() { total -= std::exchange(amount, T{}); }
  ~Share() { release(); }
};

struct Connection : std::enable_shared_from_this<Connection> {
  Connection(Socket s, std::atomic<int>& counter) : socket(std::move(s)), alarm(socket.get_executor()), place{counter} {
    place.grow(1, std::numeric_limits<int>::max());
  }
  Socket socket;
  beast::flat_buffer buffer;
  Timer alarm;       // a stream's sleep
  Share<int> place;  // among all connections
  Clock::time_point deadline = kNever;
  bool idle = true;  // nothing is lost when it is cut off now
  bool expired = false, peer_gone = false;
  char scratch[64];  // what a streaming client sends is dropped here
};

// The connections between two requests, the one idle longest first. For any thread.
class IdleLine {
 public:
  // A connection's place in it, for as long as it is idle.
  class Place {
   public:
    Place(IdleLine& line, Connection& c) : line_(line) {
      const std::scoped_lock lock(line.mutex_);
      self_ = line.all_.insert(line.all_.end(), {&c, this});
    }
    ~Place() { leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // False: another has got its room, and it has to end.
    bool leave() {
      const std::scoped_lock lock(line_.mutex_);
      if (!std::exchange(held_, false)) return false;
      line_.all_.erase(self_);
      return true;
    }

   private:
    friend IdleLine;
    IdleLine& line_;
    std::list<std::pair<Connection*, Place*>>::iterator self_;
    bool held_ = true;
  };
  // Ends the connection that has been idle longest. False: none is idle.
  bool evict();

 private:
  std::mutex mutex_;
  std::list<std::pair<Connection*, Place*>> all_;
};

struct Shard {                                  // one I/O thread
  std::unordered_set<Connection*> connections;  // before io: coroutines that io destroys take themselves out of it
  asio::io_context io{1};
  asio::executor_work_guard<Executor> work{io.get_executor()};
  Timer sweeper{io.get_executor()};
  std::thread thread;
};

struct Incoming {
  Request request;
  const Route* route = nullptr;
  bool keep_alive = false, http10 = false, head_only = false;
  bool heard = false;  // false: the peer left, or said nothing in time; no answer
};

struct Parser;  // Beast's; session.cpp

class AsioServer final : public Server {
 public:
  explicit AsioServer(const Limits& limits)
      : limits_(limits),
        pool_(static_cast<std::size_t>(limits.handler_threads)),
        quick_(static_cast<std::size_t>(limits.io_threads)) {}
  ~AsioServer() override { stop(); }

  void route(std::string method, std::string pattern, Access access, Handler handler, Work work) override {
    router_.add(std::move(method), pattern, access, std::move(handler), work);
  }
  void authenticate(std::function<std::optional<std::string>(std::string_view)> check) override {
    check_ = std::move(check);
  }
  std::uint16_t listen(const std::string& address, std::uint16_t port) override;
  void stop() override;

 private:
  void sweep(Shard& shard);
  Task<void> accept();
  Task<error_code> accept_one(Shard& shard);
  Task<void> serve(Shard& shard, std::shared_ptr<Connection> connection, bool refused);
  Task<bool> serve_one(Shard& shard, std::shared_ptr<Connection> connection);
  // Those with a Response return an answer when there is a fault, nothing when the request is whole or the peer is gone
  // (see Incoming::heard).
  Task<std::optional<Response>> receive(Connection& c, Incoming& in, Share<std::size_t>& bodies);
  Task<error_code> receive_header(Connection& c, Parser& parser, bool& folded);
  Task<std::optional<Response>> receive_body(Connection& c, Parser& parser, Incoming& in, Share<std::size_t>& bodies);
  std::optional<Response> admit(const Parser& parser, Incoming& in);
  // Nothing when the peer left before its turn came.
  Task<std::optional<Response>> handle(Connection& c, const Incoming& in, Share<std::size_t>& answers);
  Response handled(const Incoming& in, Share<std::size_t>& answers);
  Task<void> stream(Shard& shard, std::shared_ptr<Connection> connection, Response& response, bool http10);
  Task<bool> send(Connection& c, std::string_view head, std::string_view body);
  Task<void> linger(Connection& c);

  const Limits limits_;
  Router router_;
  std::function<std::optional<std::string>(std::string_view)> check_;
  std::atomic<bool> stopping_{false}, forced_{false};
  IdleLine idle_;
  std::atomic<int> connections_{0}, waiting_{0}, streams_{0}, refusals_{0};
  std::atomic<std::size_t> bodies_bytes_{0}, answers_bytes_{0};
  std::mutex stop_mutex_;
  std::condition_variable ended_;
  bool stopped_ = false;
  asio::thread_pool pool_, quick_;
  std::vector<std::unique_ptr<Shard>> shards_;  // last: what runs in them uses the rest
  std::optional<asio::basic_socket_acceptor<tcp, Executor>> acceptor_;
};

}  // namespace kbench::http
