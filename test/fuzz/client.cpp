// A server's bytes as the client takes them: as an event stream, which gives the same events wherever it is cut; as a
// text and as JSON; and as the answer to a command. Whatever they are, nothing is printed that a terminal would obey.
// The first byte chooses the cuts and the command.
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "client/commands.h"
#include "client/json.h"
#include "test/fuzz/fuzz.h"

using namespace kbench;
using namespace kbench::fuzz;
using nlohmann::json;

namespace {

// No controls but line breaks and tabs, neither of ASCII nor those beyond, in UTF-8.
bool tame(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) return false;
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) return false;
  }
  return true;
}

std::string events_in(std::string_view bytes, std::size_t step) {
  std::string out;
  client::EventParser parser;
  client::Progress progress;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    parser.feed(bytes.substr(0, step), [&](const client::Event& event) {
      require(!event.type.empty(), "an event has a type");
      require((event.id + event.type).find_first_of("\r\n") == std::string::npos, "id and type are one line");
      require(event.data.find('\r') == std::string::npos, "lines of data end in a line feed");
      progress.take(event);
      require(tame(progress.line()), "progress that may be shown");
      out += event.id + "\n" + event.type + "\n" + event.data + "\n---\n";
    });
  }
  return out;
}

void check_texts(const std::string& text) {
  const std::string safe = client::harmless(text), safe_json = client::harmless_json(text);
  require(tame(safe) && tame(safe_json), "texts that may be shown");
  require(client::harmless(safe) == safe && client::harmless_json(safe_json) == safe_json,
          "what is safe stays as it is");
  require(!tame(text) || safe == text, "what is tame stays as it is");
  const bool is_json = text.find('\0') == text.npos && json::accept(text);  // which takes a NUL for the end
  if (is_json) require(json::parse(safe_json) == json::parse(text), "JSON that means the same");
  try {
    require(tame(client::described(text)) && tame(client::verdict_line(text)), "a submission that may be shown");
    const int code = client::exit_code_of(text);
    require(code == client::kOk || code == client::kNotCorrect || code == client::kInfra || code == client::kCancelled,
            "a code that docs/cli.md has");
  } catch (const std::exception&) {  // said by main, as harmless text
  }
}

// Answers one request after another with the bytes it was given; where a command has followed events to their end, it
// finds that the submission has ended.
class Server {
 public:
  Server() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && ::listen(listener_, 64) == 0 &&
                ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) == 0,
            "a port to listen at");
    port = ntohs(at.sin_port);
    std::thread([this] {
      for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) serve(fd);
    }).detach();
  }
  void give(std::string_view bytes, int status, bool to_events) {
    const std::scoped_lock lock(mutex_);
    bytes_ = bytes;
    status_ = status;
    to_events_ = to_events;
  }
  std::uint16_t port = 0;

 private:
  void serve(int fd) {
    std::string head;
    char block[4096];
    while (head.find("\r\n\r\n") == head.npos) {
      const ssize_t got = ::recv(fd, block, sizeof block, 0);
      if (got <= 0) break;
      head.append(block, static_cast<std::size_t>(got));
    }
    std::string answer;
    {
      const std::scoped_lock lock(mutex_);
      const bool given = !to_events_ || head.substr(0, head.find('\r')).find("/events ") != head.npos;
      const std::string body = given ? bytes_ : R"({"state":"done","verdict":"correct"})";
      answer = "HTTP/1.1 " + std::to_string(given ? status_ : 200) +
               " Status\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    for (std::string_view rest = answer; !rest.empty();) {
      const ssize_t sent = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    while (::recv(fd, block, sizeof block, 0) > 0) {
    }
    const linger at_once{1, 0};  // leaves no port behind that waits for a minute
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(fd);
  }
  int listener_ = -1;
  std::mutex mutex_;
  std::string bytes_;
  int status_ = 200;
  bool to_events_ = false;
};

constexpr unsigned kEvents = 7;

void run(unsigned command, client::Api& api, bool as_json) {
  switch (command) {
    case 0:
      client::status(api, "s-1", as_json);
      break;
    case 1:
      client::list(api, {}, as_json);
      break;
    case 2:
      client::tasks(api, "", as_json);
      break;
    case 3:
      client::tasks(api, "family/name", as_json);
      break;
    case 4:
      client::gpus(api, as_json);
      break;
    case 5:
      client::log(api, "s-1", as_json);
      break;
    case 6:
      client::details(api, "s-1");
      break;
    default:
      client::events(api, "s-1", 0, as_json);
  }
}

// What a command prints of an answer.
std::string printed(std::string_view bytes, unsigned command, bool as_json, int status) {
  static Server& server = *new Server;  // its thread ends with the process
  static const int file = [] {
    const int memory = ::memfd_create("stdout", MFD_CLOEXEC);
    require(memory >= 0 && ::dup2(memory, STDOUT_FILENO) >= 0, "a place for what is printed");
    return memory;
  }();
  client::Options options;
  options.url = "http://127.0.0.1:" + std::to_string(server.port);
  options.patience = std::chrono::milliseconds(0);
  client::Api api(options);
  server.give(bytes, status, command == kEvents);
  std::string said;
  try {
    run(command, api, as_json);
  } catch (const client::Refused& refused) {
    said = refused.what() + client::harmless_json(refused.body);
    require(status != 200, "an answer of 200 is no refusal");
  } catch (const std::exception& fault) {
    said = client::harmless(fault.what());
  }
  std::fflush(stdout);
  const off_t end = ::lseek(file, 0, SEEK_CUR);
  std::string text(static_cast<std::size_t>(end), '\0');
  require(::pread(file, text.data(), text.size(), 0) == end, "what was printed");
  require(::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0, "room for what is printed next");
  require(status == 200 || text.empty(), "nothing is printed of a refusal but its reason");
  return text + said;
}

}  // namespace

KBENCH_FUZZ_TARGET(data, size) {
  Input input(data, size);
  const unsigned choice = input.byte();
  const std::string_view bytes = input.rest();
  const std::size_t step = 1 + choice;
  const auto whole = events_in(bytes, bytes.size() + 1);
  require(events_in(bytes, step) == whole, "the same events, wherever it is cut");
  require(events_in(bytes, 1) == whole, "the same events, byte by byte");
  check_texts(std::string(bytes));
  const bool as_json = choice & 8, refused = (choice & 48) == 48;
  require(tame(printed(bytes, choice % 8, as_json, refused ? 422 : 200)), "a terminal obeys nothing that is printed");
  return 0;
}
