// Listener, I/O threads, deadlines, stop.
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>

#include "daemon/http/server_impl.h"
#include "daemon/http/wire.h"

namespace kbench::http {

bool IdleLine::evict() {
  std::shared_ptr<Connection> longest;
  {
    const std::scoped_lock lock(mutex_);
    if (all_.empty()) return false;
    auto& [connection, place] = all_.front();
    longest = connection->shared_from_this();  // its coroutine, which holds it, does not end before it has left
    place->held_ = false;
    all_.pop_front();
  }
  asio::post(longest->socket.get_executor(), [longest] {
    error_code ignored;
    longest->socket.cancel(ignored);
  });
  return true;
}

std::uint16_t AsioServer::listen(const std::string& address, std::uint16_t port) {
  for (int i = 0; i < limits_.io_threads; ++i) shards_.push_back(std::make_unique<Shard>());
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(address), port);
    acceptor_.emplace(shards_[0]->io.get_executor());
    acceptor_->open(endpoint.protocol());
    acceptor_->set_option(tcp::acceptor::reuse_address(true));
    acceptor_->bind(endpoint);
    acceptor_->listen(4096);
  } catch (const boost::system::system_error& e) {
    acceptor_.reset();
    shards_.clear();
    throw std::runtime_error("cannot listen on " + address + " port " + std::to_string(port) + ": " +
                             e.code().message());
  }
  asio::co_spawn(shards_[0]->io, accept(), [](const std::exception_ptr& fault) {
    if (fault) spdlog::critical("http: no more connections are accepted");
  });
  for (auto& shard : shards_) {
    sweep(*shard);
    shard->thread = std::thread([&io = shard->io] { io.run(); });
  }
  return acceptor_->local_endpoint().port();
}

void AsioServer::sweep(Shard& shard) {
  shard.sweeper.expires_after(kSweep);
  shard.sweeper.async_wait([this, &shard](error_code ec) {
    if (ec) return;
    const auto now = Clock::now();
    for (auto* c : shard.connections) {
      if (c->deadline > now && !forced_) continue;
      // The deadline stays: a composed operation may be between two reads just now, and is then cancelled by the next
      // sweep.
      error_code ignored;
      c->expired = true;
      c->socket.cancel(ignored);
    }
    sweep(shard);
  });
}

// Whatever goes wrong with one connection, the next is accepted: descriptors and memory come back as clients leave.
Task<void> AsioServer::accept() {
  Timer pause(shards_[0]->io.get_executor());
  for (std::size_t next = 0;; next = (next + 1) % shards_.size()) {
    std::string fault;
    try {
      const auto ec = co_await accept_one(*shards_[next]);
      if (stopping_ || ec == asio::error::operation_aborted) co_return;
      if (!ec) continue;
      fault = ec.message();
    } catch (const std::exception& e) {
      fault = e.what();
    }
    spdlog::warn("http: cannot accept a connection: {}", fault);
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kTry);
  }
}

Task<error_code> AsioServer::accept_one(Shard& shard) {
  auto [ec, socket] = co_await acceptor_->async_accept(shard.io.get_executor(), kTry);
  if (ec || stopping_) co_return ec;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto gone_after_ms = static_cast<unsigned>(limits_.acknowledge_timeout.count());
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &gone_after_ms, sizeof gone_after_ms);
  // Whoever says nothing gives way; a request or a stream never does.
  const bool refused = connections_ >= limits_.connections_max && !idle_.evict();
  if (refused && refusals_ >= kRefusalsMax) co_return ec;
  auto connection = std::make_shared<Connection>(std::move(socket), refused ? refusals_ : connections_);
  asio::co_spawn(shard.io, serve(shard, std::move(connection), refused),
                 [](std::exception_ptr) {});  // serve catches all
  co_return ec;
}

// One connection from its first byte to its last.
Task<void> AsioServer::serve(Shard& shard, std::shared_ptr<Connection> connection, bool refused) {
  struct Membership {
    AsioServer& server;
    Shard& shard;
    Connection* connection;
    ~Membership() {
      error_code ignored;
      connection->socket.close(ignored);
      shard.connections.erase(connection);
      const std::scoped_lock lock(server.stop_mutex_);
      connection->place.release();
      server.ended_.notify_all();
    }
  };
  const Membership membership{*this, shard, connection.get()};
  shard.connections.insert(connection.get());
  try {
    if (refused) {
      const auto full =
          problem({503, "too-many-connections", "too many connections with a request under way",
                   "Come back. There may be " +
                       limit_text(limits_.connections_max, "connections", "http.connections_max") + " at a time.",
                   "", 5});
      Manner manner;
      manner.keep_alive = false;
      const auto head = head_of(full, manner);
      if (co_await send(*connection, head, full.body)) co_await linger(*connection);
    } else {
      while (co_await serve_one(shard, connection)) {
      }
    }
  } catch (const std::exception& e) {
    spdlog::error("http: connection dropped: {}", e.what());
  }
}

void AsioServer::stop() {
  std::unique_lock lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  stopping_ = true;
  const auto all_ended = [this] { return connections_ == 0 && refusals_ == 0; };
  for (auto& shard : shards_) {
    asio::post(shard->io, [this, &shard] {
      error_code ignored;
      if (shard == shards_[0]) acceptor_->close(ignored);
      for (auto* c : shard->connections) {
        if (c->idle) c->socket.cancel(ignored);
        c->alarm.cancel();
      }
    });
  }
  ended_.wait_for(lock, limits_.stop_grace, all_ended);
  forced_ = true;  // the sweeps cancel what is left
  ended_.wait_for(lock, 4 * kSweep, all_ended);
  lock.unlock();
  quick_.join();  // a handler cannot be interrupted
  pool_.join();
  lock.lock();
  ended_.wait_for(lock, 4 * kSweep, all_ended);
  lock.unlock();
  for (auto& shard : shards_) {
    shard->io.stop();
    if (shard->thread.joinable()) shard->thread.join();
  }
}

std::unique_ptr<Server> Server::create(const Limits& limits) { return std::make_unique<AsioServer>(limits); }

}  // namespace kbench::http
