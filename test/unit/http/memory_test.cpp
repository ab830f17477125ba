// A server that once finds no memory for a connection. In a program of its own: its allocations may fail.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "daemon/http/http.h"
#include "test/unit/http/client.h"

using namespace kbench::http;
using namespace kbench::test;

namespace {

constexpr std::size_t kOfAConnection = 256;  // less than one takes, more than the sweep does
std::atomic<bool> fail_once{false};
thread_local bool spared = false;

void* allocated(std::size_t bytes) {
  if (bytes >= kOfAConnection && !spared && fail_once.exchange(false)) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes)) return memory;  // NOLINT: this is new
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }               // NOLINT
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }  // NOLINT

TEST_CASE("a connection there is no memory for is lost alone: the next is accepted") {
  spared = true;
  Limits limits;
  limits.connections_max = 1;
  const auto server = Server::create(limits);
  server->route("GET", "/ping", Access::open, [](const Request&) { return Response(); }, Work::quick);
  const auto port = server->listen("127.0.0.1", 0);
  const auto ask = [&] {
    RawClient client(port);
    client.send("GET /ping HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    return status_of(client.answer());
  };
  // The place of the one before may be given back a moment after its answer.
  const auto served = [&] {
    int status = 503;
    for (int tries = 0; tries < 100 && status == 503; ++tries) status = ask();
    return status == 200;
  };
  CHECK(served());
  for (int i = 0; i < 3; ++i) {
    fail_once = true;
    for (int tries = 0; tries < 100 && fail_once; ++tries) ask();
    CHECK_FALSE(fail_once);
    CHECK(served());
  }
}
