#include "daemon/config/options.h"

#include <arpa/inet.h>

#include "daemon/config/kinds.h"
#include "daemon/config/tables.h"

namespace kbench::config {

namespace {

using namespace std::chrono_literals;

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

void add_server(std::vector<Option>& all) {
  all.push_back(
      text("server.address", PLACE(server.address), "an IP address",
           "Where to listen. Other than loopback only behind a proxy that speaks TLS: the token travels in the clear.",
           is_address));
  all.push_back(number("server.port", PLACE(server.port), 0, 65535, "Where to listen; 0 takes a free one and logs it.",
                       "a port"));
  all.push_back(text("server.token_file", PLACE(server.token_file), "a path",
                     "Holds the token that requests must carry; made at the first start. Of the daemon's own user, and "
                     "readable by nobody else, or it does not start. "
                     "Default: `token` in the data folder."));
  all.push_back(text("data.folder", PLACE(data_folder), "an absolute path",
                     "Where the daemon keeps what must survive. On a disk of its own machine: the store needs shared "
                     "memory and locks.",
                     [](const std::string& s) { return s.starts_with('/'); }));
  all.push_back(text("tasks.folder", PLACE(tasks_folder), "a path",
                     "The task folders, as kbench-catalog makes them. Relative to where kbenchd was started."));
}

void add_queue(std::vector<Option>& all) {
  all.push_back(
      text("store.path", PLACE(store_path), "a path", "The SQLite database. Default: `kbench.db` in the data folder."));
  all.push_back(number("store.group_size", PLACE(store.group_size_max), 1, 4096,
                       "Writes that one commit makes durable at most."));
  all.push_back(number("store.readers", PLACE(store.readers), 1, 64,
                       "Connections for reads of one submission, and for the queue's own."));
  all.push_back(number("store.list_readers", PLACE(store.list_readers), 1, 64, "Connections for lists."));
  all.push_back(number("store.list_rows_max", PLACE(store.list_rows_max), 1'000, 10'000'000,
                       "Submissions that one list looks at, at most; a page may be short then, its `next` goes on."));
  all.push_back(duration("store.busy_timeout", PLACE(store.busy_timeout), 0ms, 60s,
                         "How long to wait for another process that holds the database."));
  all.push_back(size("store.wal_bytes_max", PLACE(store.wal_bytes_max), kMiB, 64 * kGiB,
                     "A longer write-ahead log is emptied as soon as no reader needs it."));
  all.push_back(number("queue.depth_max", PLACE(queue.depth_max), 1, 100'000'000,
                       "Submissions that may wait; one more gets a 503."));
  all.push_back(number("queue.attempts_max", PLACE(queue.attempts_max), 1, 100,
                       "How often infrastructure may fail under a submission before it ends as `infra_error`."));
  all.push_back(duration("queue.lease", PLACE(queue.lease), 1s, 1h,
                         "A grader that is not heard of for so long loses its submission to the next. Renewed all the "
                         "time, so this is not "
                         "a limit on gradings."));
  all.push_back(duration("queue.sweep", PLACE(queue.sweep), 10ms, 1min,
                         "Between two looks for leases that ran out and retries that are due."));
  all.push_back(duration("queue.retry_delay", PLACE(store.retry_delay), 0ms, 1h,
                         "Before a second attempt; doubles with each failure."));
  all.push_back(
      duration("queue.retry_delay_max", PLACE(store.retry_delay_max), 0ms, 24h, "What the doubling ends at."));
}

void add_http(std::vector<Option>& all) {
  all.push_back(size("http.header_bytes_max", PLACE(http.header_bytes_max), kKiB, kMiB,
                     "All headers of a request; more is a 431."));
  all.push_back(number("http.header_fields_max", PLACE(http.header_fields_max), 8, 10'000,
                       "Header fields of a request; more is a 431."));
  all.push_back(
      size("http.body_bytes_max", PLACE(http.body_bytes_max), kKiB, kGiB, "The body of a request; more is a 413."));
  all.push_back(size("http.bodies_bytes_max", PLACE(http.bodies_bytes_max), kKiB, 64 * kGiB,
                     "The bodies of all requests that are being received or handled; past it requests get a 503."));
  all.push_back(size("http.answers_bytes_max", PLACE(http.answers_bytes_max), kMiB, 64 * kGiB,
                     "The large answers that clients are taking, together; past it requests for one get a 503. At "
                     "least grader.details_bytes_max."));
  all.push_back(number("http.connections_max", PLACE(http.connections_max), 1, 1'000'000,
                       "Open connections. One more takes the place of the one that has been idle longest; while "
                       "requests are under way on all of them it gets a 503."));
  all.push_back(number("http.waiting_max", PLACE(http.waiting_max), 1, 1'000'000,
                       "Requests that wait for one of the handler threads; one more gets a 503."));
  all.push_back(number("http.streams_max", PLACE(http.streams_max), 1, 1'000'000, "Open event streams."));
  all.push_back(
      duration("http.idle_timeout", PLACE(http.idle_timeout), 1s, 1h, "Between two requests of a connection."));
  all.push_back(duration("http.request_timeout", PLACE(http.request_timeout), 1s, 1h,
                         "From a request's first byte to its last; and for the client to take the answer."));
  all.push_back(duration("http.acknowledge_timeout", PLACE(http.acknowledge_timeout), 1s, 1h,
                         "For a client's machine to acknowledge what was sent; past it the connection ends. So those "
                         "end whose clients vanished without a word."));
  all.push_back(duration("http.stream_heartbeat", PLACE(http.stream_heartbeat), 1s, 10min,
                         "Between two signs of life in an event stream."));
  all.push_back(duration("http.stop_grace", PLACE(http.stop_grace), 0ms, 10min,
                         "How long running requests may take to end at shutdown."));
  all.push_back(number("http.io_threads", PLACE(http.io_threads), 1, 64, "Threads that serve connections."));
  all.push_back(
      number("http.handler_threads", PLACE(http.handler_threads), 1, 1024, "Requests that are handled at a time."));
}

void add_engine(std::vector<Option>& all) {
  const auto deadline = [&](const char* key, auto place, const char* doc) {
    all.push_back(duration(key, place, 100ms, 24h, doc));
  };
  all.push_back(text("engine.socket", PLACE(engine.socket), "an absolute path",
                     "The Docker Engine's unix socket, on this machine.",
                     [](const std::string& s) { return s.starts_with('/'); }));
  deadline("engine.connect_timeout", PLACE(engine.connect_timeout), "To connect.");
  deadline("engine.ping_timeout", PLACE(engine.ping_timeout), "For the Engine to answer a ping.");
  deadline("engine.inspect_timeout", PLACE(engine.inspect_timeout), "For a look at a container or image.");
  deadline("engine.create_timeout", PLACE(engine.create_timeout), "To create a container.");
  deadline("engine.start_timeout", PLACE(engine.start_timeout), "To start a container; what attaches a GPU is slow.");
  deadline("engine.kill_timeout", PLACE(engine.kill_timeout), "To kill a container; the Engine itself tries for 15 s.");
  deadline("engine.remove_timeout", PLACE(engine.remove_timeout), "To remove a container.");
  deadline("engine.logs_timeout", PLACE(engine.logs_timeout), "To fetch a container's log.");
  deadline("engine.image_timeout", PLACE(engine.image_timeout), "To remove an image, and the like.");
  deadline("engine.build_timeout", PLACE(engine.build_timeout), "To build an image; past it `infra_error`.");
  deadline("engine.backoff_min", PLACE(engine.backoff_min), "Between two tries while the Engine is away, at first.");
  deadline("engine.backoff_max", PLACE(engine.backoff_max), "Between two tries while the Engine is away, in the end.");
  all.push_back(
      number("engine.changes_max", PLACE(engine.changes_max), 1, 64, "Calls at a time that change something."));
  all.push_back(
      size("engine.reply_bytes_max", PLACE(engine.reply_bytes_max), 64 * kKiB, kGiB, "An answer that is kept whole."));
  all.push_back(size("engine.build_message_bytes_max", PLACE(engine.build_message_bytes_max), kKiB, kGiB,
                     "One message in the stream of a build."));
  all.push_back(size("engine.build_log_bytes_max", PLACE(engine.build_log_bytes_max), kKiB, kGiB,
                     "The end of a build's log that is kept."));
  all.push_back(size("engine.log_bytes_max", PLACE(engine.log_bytes_max), kKiB, kGiB,
                     "The end of a container's log that is kept."));
  all.push_back(
      number("engine.context_files_max", PLACE(engine.context.files_max), 1, 1'000'000, "Files in a build context."));
  all.push_back(size("engine.context_bytes_max", PLACE(engine.context.bytes_max), kKiB, 16 * kGiB,
                     "All contents of a build context."));
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      {"server", "The REST interface."},
      {"data", "What must survive."},
      {"tasks", "What can be submitted to."},
      {"store", "The database of submissions."},
      {"queue", "Who is graded when, and how often."},
      {"http", "Limits on clients."},
      {"submissions", "What a submission may be."},
      {"engine", "The Docker Engine."},
      {"gpu", "GPUs, and how containers get them."},
      {"grader", "Slots, and the containers that compile and measure."},
      {"verifier", "Deadlines within a measuring container."},
  };
  return all;
}

const std::vector<Option>& options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> made;
    add_server(made);
    add_queue(made);
    add_http(made);
    add_engine(made);
    add_grading(made);
    return made;
  }();
  return all;
}

void complete(Config& config) {
  if (config.server.token_file.empty()) config.server.token_file = config.data_folder + "/token";
  if (config.grader.work_folder.empty()) config.grader.work_folder = config.data_folder + "/work";
  if (config.store_path.empty()) config.store_path = config.data_folder + "/kbench.db";
}

std::vector<std::string> contradictions(const Config& config) {
  // The socket's own name below the work folder: "/" and 26 characters of id, attempt, "/report/report.sock"; 107 in
  // all.
  constexpr std::size_t kWorkFolderMax = 60;
  std::vector<std::string> all;
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) all.push_back(what);
  };
  const std::string& work = config.grader.work_folder;
  require(work.size() <= kWorkFolderMax, "grader.work_folder: " + work +
                                             " is longer than 60 bytes, too long for the sockets in it; "
                                             "set it, or a shorter data.folder");
  require(config.http.answers_bytes_max >= config.grader.details_bytes_max,
          "http.answers_bytes_max: less than grader.details_bytes_max, so that the largest could not be fetched");
  require(config.submissions.page_default <= config.submissions.page_max,
          "submissions.page_default: greater than submissions.page_max");
  require(config.store.retry_delay <= config.store.retry_delay_max,
          "queue.retry_delay: greater than queue.retry_delay_max");
  require(config.queue.lease >= 4 * config.grader.renew_every,
          "queue.lease: less than four times grader.renew_every, so that one late renewal would lose it");
  require(config.http.acknowledge_timeout >= config.http.request_timeout,
          "http.acknowledge_timeout: less than http.request_timeout, so that who reads slowly would be taken for gone");
  require(config.engine.backoff_min <= config.engine.backoff_max,
          "engine.backoff_min: greater than engine.backoff_max");
  const std::uint64_t slots_end = config.slots.uid_first + 1'000ull * config.slots.uids_per_slot;
  const std::uint64_t compile_end = config.grader.compile_uid_first + 1'000ull;
  require(compile_end <= config.slots.uid_first || slots_end <= config.grader.compile_uid_first,
          "grader.compile_uid_first: its 1000 user ids overlap the slots' (grader.uid_first and 32000 on)");
  return all;
}

}  // namespace kbench::config
