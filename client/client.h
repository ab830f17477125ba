// kbench, the command line client: what its parts share. docs/cli.md has what users see.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kbench::client {

// Exit codes; docs/cli.md.
inline constexpr int kOk = 0;          // done; with --wait or status: the verdict is `correct`
inline constexpr int kNotCorrect = 1;  // another verdict; doctor: something is amiss
inline constexpr int kUsage = 2;
inline constexpr int kRefused = 3;      // the server understood and refused
inline constexpr int kUnreachable = 4;  // no answer, or the server's own failure, after all tries
inline constexpr int kInfra = 5;        // the grading failed for reasons that are not the submission's
inline constexpr int kCancelled = 6;

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Unreachable : std::runtime_error {
  explicit Unreachable(const std::string& text, std::string answer = "")
      : std::runtime_error(text), body(std::move(answer)) {}
  std::string body;  // of the last answer, when there was one
};
struct Refused : std::runtime_error {  // what(): title, fix and field as text; body: problem+json as it came
  Refused(const std::string& text, std::string problem_json)
      : std::runtime_error(text), body(std::move(problem_json)) {}
  std::string body;
};

struct Reply {
  long status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// The first line of a file; the token is empty where it cannot be read. The warning: who else may read it, and the fix.
// Not a refusal, as it is kbenchd's: secrets that others lay out, in containers say, are often readable by all there.
struct TokenFile {
  std::string token, warning;
};
TokenFile token_in(const std::string& path);

// One event of a stream.
struct Event {
  std::string id, type, data;
};

// Cuts an event stream's bytes into events, however they arrive. A line or an event longer than kEventBytesMax throws
// Unreachable.
class EventParser {
 public:
  static constexpr std::size_t kEventBytesMax = 1 << 20;
  void feed(std::string_view bytes, const std::function<void(const Event&)>& on_event);

 private:
  void line(std::string_view text, const std::function<void(const Event&)>& on_event);
  std::string pending_;
  bool after_cr_ = false;  // the LF of a CRLF that was cut in two
  std::string id_, type_, data_;
  bool has_data_ = false;
};

struct Options {
  std::string url = "http://127.0.0.1:8700", token;
  std::chrono::milliseconds patience{60'000};  // with a server that is away, over all tries of one call
};

// The REST interface. Retries what may be repeated when the connection fails or the server says 503; blocks meanwhile.
class Api {
 public:
  explicit Api(Options options);  // throws UsageError for an URL that is none
  // Throws Refused for any 4xx but those in `accepted`, Unreachable when there is no use in waiting any longer.
  Reply ask(const std::string& method, const std::string& path, const std::string& body = "",
            const std::map<std::string, std::string>& headers = {}, bool may_repeat = true);
  // One connection to an event stream: returns when the server ends it, or on_event returns false. False: it broke, or
  // there was no answer in time; reconnect behind the last id. Throws Refused.
  bool follow(const std::string& path, const std::string& last_event_id,
              const std::function<bool(const Event&)>& on_event);
  const Options& options() const { return options_; }
  bool in_the_clear() const { return !options_.token.empty() && !loopback_ && options_.url.starts_with("http:"); }

 private:
  const Options options_;
  bool loopback_ = false;
};

// Milliseconds to wait before try number `tries` (from 1): doubles from 200 to 5000, the server's Retry-After (s) if
// longer, capped at 30 s.
std::chrono::milliseconds pause_before(int tries, const std::string& retry_after);

// Percent-encoded for a path or a query.
std::string encoded(std::string_view text);

// A submission's files from what stands on the command line: a file goes to the top folder by its own name, a folder
// gives all that is in it (without hidden files), by their paths in it. Throws UsageError naming the file: unreadable,
// two of one name, not UTF-8, too large.
std::map<std::string, std::string> gathered(const std::vector<std::string>& arguments);

// Turns events into one line of progress.
class Progress {
 public:
  void take(const Event& event);                // rubbish is ignored
  std::string line() const;                     // "measuring  run 2 of 5  repetition 7 of 18"
  std::string phase() const { return phase_; }  // changes seldom: for output that is no terminal
  bool ended() const { return ended_; }         // the result came

 private:
  std::string phase_ = "queued", detail_;
  int attempt_ = 1;
  bool ended_ = false;
};

// Text of a submission (JSON as the server gives it) for people, and the exit code that it means.
std::string described(const std::string& submission_json);
std::string verdict_line(const std::string& submission_json);
int exit_code_of(const std::string& submission_json);

// Text of a server as a terminal may show it: control characters become \xNN, but for line breaks and tabs.
std::string harmless(std::string_view text);
// The same for a server's JSON, which means the same then: \u00NN.
std::string harmless_json(std::string_view json);

std::string rounded(double value);  // four digits, for people

int doctor(const std::optional<Options>& server, const std::string& data_folder, bool as_json);

}  // namespace kbench::client
