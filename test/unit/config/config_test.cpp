#include "daemon/config/config.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "daemon/config/options.h"

using namespace kbench::config;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::Equals;

namespace {

std::vector<std::string> errors_of(const std::string& toml) {
  try {
    parse(toml, "k.toml");
    return {};
  } catch (const BadConfig& e) {
    return e.errors;
  }
}

}  // namespace

TEST_CASE("an empty file is the defaults, which accept themselves") {
  const Config c = parse("", "k.toml");
  CHECK(c.server.address == "127.0.0.1");
  CHECK(c.server.port == 8700);
  CHECK(c.data_folder == "/var/lib/kbench");
  CHECK(c.server.token_file == "/var/lib/kbench/token");
  CHECK(c.store_path == "/var/lib/kbench/kbench.db");
  const std::string shown = effective(c);
  CHECK(effective(parse(shown, "shown")) == shown);
}

TEST_CASE("every option is read where it belongs, with its unit") {
  const Config c = parse(R"(
[server]
port = 9000
address = "::1"
token_file = "/etc/kbench token"
[data]
folder = "/srv/k"
[http]
body_bytes_max = "4 MiB"
header_bytes_max = 8192
request_timeout = "10 s"
stop_grace = "250 ms"
acknowledge_timeout = "20 s"
[queue]
depth_max = 5
lease = "1 min"
retry_delay = "100 ms"
[store]
group_size = 8
[engine]
socket = "/tmp/e.sock"
)",
                         "k.toml");
  CHECK(c.server.port == 9000);
  CHECK(c.server.address == "::1");
  CHECK(c.server.token_file == "/etc/kbench token");
  CHECK(c.store_path == "/srv/k/kbench.db");
  CHECK(c.http.body_bytes_max == 4u << 20);
  CHECK(c.http.header_bytes_max == 8192);
  CHECK(c.http.request_timeout == 10s);
  CHECK(c.http.stop_grace == 250ms);
  CHECK(c.http.acknowledge_timeout == 20s);
  CHECK(c.queue.depth_max == 5);
  CHECK(c.queue.lease == 1min);
  CHECK(c.store.retry_delay == 100ms);
  CHECK(c.store.group_size_max == 8);
  CHECK(c.engine.socket == "/tmp/e.sock");
  CHECK(effective(parse(effective(c), "shown")) == effective(c));
}

TEST_CASE("all errors at once, each with its line, its key and what is expected") {
  const auto errors = errors_of(R"([server]
port = 70000
prot = 1
address = "localhost"
[sever]
port = 1
[http]
body_bytes_max = "16 mb"
request_timeout = 30
io_threads = "two"
[queue]
attempts_max = 0
lease = "30 s"
)");
  REQUIRE(errors.size() == 8);
  const std::set<std::string> all(errors.begin(), errors.end());
  CHECK(all.count("k.toml:2: server.port: 70000 is not a port (0..65535); see docs/configuration.md"));
  CHECK(all.count("k.toml:3: server.prot: no such option; did you mean server.port?"));
  CHECK(all.count("k.toml:5: [sever]: no such section; did you mean [server]?"));
  CHECK(all.count("k.toml:9: http.request_timeout: 30 is not a time within 1 s..1 h; see docs/configuration.md"));
  CHECK(all.count("k.toml:12: queue.attempts_max: 0 is not a whole number (1..100); see docs/configuration.md"));
  try {
    parse("[server]\nport = -1\n[http]\nio_threads = 0\n", "k.toml");
    FAIL();
  } catch (const BadConfig& e) {
    CHECK_THAT(e.what(), Contains("k.toml:2: server.port") && Contains("\nk.toml:4: http.io_threads"));
  }
}

TEST_CASE("what is no configuration at all") {
  CHECK_THAT(errors_of("[server\nport = 1").at(0), Contains("k.toml:1: "));
  CHECK_THAT(errors_of("[server]\nport = 1\nport = 2").at(0), Contains("k.toml:3: "));
  CHECK_THAT(errors_of("port = 1").at(0),
             Equals("k.toml:1: port: an option outside of a section; see docs/configuration.md"));
  CHECK_THAT(errors_of("server = 3").at(0), Contains("outside of a section"));
  CHECK_THAT(errors_of("[server.port]\nx = 1").at(0), Contains("server.port: ") && Contains(" is not a port"));
  CHECK_THAT(errors_of("[server]\nport = 1e3").at(0), Contains("is not a port"));
  CHECK_THAT(errors_of("[data]\nfolder = \"relative\"").at(0), Contains("is not an absolute path"));
  CHECK_THAT(errors_of("[data]\nfolder = \"/a\\u0000b\"").at(0), Contains("is not an absolute path"));
  CHECK_THAT(errors_of("[data]\nfolder = [\"/a\", 1]").at(0), Contains("is not an absolute path"));
  CHECK_THROWS_WITH(load("/nowhere/k.toml"), Contains("/nowhere/k.toml: cannot be read"));
  CHECK_THROWS_WITH(load("/tmp"), Contains("cannot be read"));
}

TEST_CASE("letters that are not ASCII are taken in texts and comments only") {
  CHECK_THROWS_WITH(parse("[\u00e4]", "k.toml"), Catch::Contains("names of tables"));
  for (const char* bad :
       {"\u00e4 = 1", "tz\u0303 = 1", "[server]\nport = 7\u00e4", "[server]\nport = \u01bf", "\u01bf"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse(bad, "k.toml"), Catch::Contains("k.toml:") && Catch::Contains("rror while parsing"));
  }
  CHECK_THROWS_WITH(parse("# \u00e4\n[data]\nfolder = \"\\\"\u00e4\"\n\u00e4", "k.toml"),
                    Catch::Contains("k.toml:4: "));
  for (const char* good : {"# \u00e4\u01bf\n", "[data]\nfolder = \"/\u00e4\\\\\" # \u00e4",
                           "[data]\nfolder = '/\u00e4\\'", "[data]\nfolder = \"\"\"/\u00e4\"\u00e4\"\"\"\"\n",
                           "[data]\nfolder = '''/\u00e4\n\u00e4'''\n", "\xef\xbb\xbf[data]\nfolder = \"/a\"\n"}) {
    INFO(good);
    CHECK_NOTHROW(parse(good, "k.toml"));
  }
}

TEST_CASE("an empty file is a configuration") {
  const std::string path = "/tmp/kbench-config-test-" + std::to_string(getpid()) + ".toml";
  std::ofstream(path).flush();
  CHECK(effective(load(path)) == effective(parse("", "")));
  std::filesystem::remove(path);
}

TEST_CASE("lists: slots, GPUs, mounts") {
  const Config c = parse(R"(
[grader]
cpu_slots = ["0-3", "4,6-7", "all"]
compile_cpus = ["8"]
ranked_devices = []
[gpu]
mode = "devices"
excluded = ["GPU-1"]
cpusets = ["GPU-2=0-15"]
nodes = ["/dev/nvidia-caps"]
mounts = ["/usr/lib/a:/b"]
env = ["LD_LIBRARY_PATH=/x=y"]
[verifier]
repetition = "1500 ms"
)",
                         "k.toml");
  CHECK(c.slots.cpu_slots == std::vector<std::string>{"0-3", "4,6-7", ""});
  CHECK(c.grader.compile_cpuset == "8");
  CHECK(c.grader.ranked_devices.empty());
  CHECK(c.attach.mode == kbench::gpu::Mode::devices);
  CHECK(c.slots.gpus_excluded == std::vector<std::string>{"GPU-1"});
  CHECK(c.slots.gpu_cpusets.at("GPU-2") == "0-15");
  CHECK(c.attach.nodes.at(0) == "/dev/nvidia-caps");
  CHECK(c.attach.mounts.at(0).source == "/usr/lib/a");
  CHECK(c.attach.mounts.at(0).target == "/b");
  CHECK(c.attach.mounts.at(0).read_only);
  CHECK(c.attach.env.at("LD_LIBRARY_PATH") == "/x=y");
  CHECK(c.grader.verifier.repetition == 1.5);
  CHECK(effective(parse(effective(c), "shown")) == effective(c));
  for (const char* bad :
       {"cpu_slots = [\"0-\"]", "cpu_slots = [\"\"]", "cpu_slots = [\"-1\"]", "cpu_slots = \"0\"", "cpu_slots = [0]",
        "compile_cpus = [\"0\", \"1\"]", "ranked_devices = [\"tpu\"]", "name = \"a b\"", "seccomp_file = \"x\""}) {
    CAPTURE(bad);
    CHECK(errors_of("[grader]\n" + std::string(bad)).size() == 1);
  }
  for (const char* bad : {"mode = \"nvidea\"", "excluded = [\"1\"]", "cpusets = [\"GPU-2\"]", "mounts = [\"/a\"]",
                          "mounts = [\"a:/b\"]", "env = [\"=x\"]"}) {
    CAPTURE(bad);
    CHECK(errors_of("[gpu]\n" + std::string(bad)).size() == 1);
  }
}

TEST_CASE("options that do not go together are told, too") {
  CHECK_THAT(errors_of("[queue]\nlease = \"1 s\"\n[grader]\nrenew_every = \"500 ms\"").at(0),
             Contains("k.toml: queue.lease: "));
  CHECK_THAT(errors_of("[http]\nacknowledge_timeout = \"29 s\"").at(0), Contains("http.acknowledge_timeout: "));
  CHECK(errors_of("[http]\nacknowledge_timeout = \"30 s\"").empty());
  CHECK_THAT(errors_of("[http]\nanswers_bytes_max = \"31 MiB\"").at(0), Contains("http.answers_bytes_max: "));
  CHECK(errors_of("[http]\nanswers_bytes_max = \"32 MiB\"").empty());
  const auto errors = errors_of("[data]\nfolder = \"/" + std::string(70, 'x') +
                                "\"\n[submissions]\npage_default = 300\n[grader]\nuid_first = 190500\n");
  REQUIRE(errors.size() == 3);
  CHECK_THAT(errors[0], Contains("grader.work_folder") && Contains("shorter data.folder"));
  CHECK_THAT(errors[1], Contains("submissions.page_default"));
  CHECK_THAT(errors[2], Contains("grader.compile_uid_first"));
}

TEST_CASE("every limit holds at its edges") {
  CHECK(errors_of("[server]\nport = 65535").empty());
  CHECK(errors_of("[server]\nport = 65536").size() == 1);
  CHECK(errors_of("[http]\nbody_bytes_max = \"1 GiB\"").empty());
  CHECK(errors_of("[http]\nbody_bytes_max = 1073741825").size() == 1);
  CHECK(errors_of("[http]\nidle_timeout = \"999 ms\"").size() == 1);
  CHECK(errors_of("[http]\nidle_timeout = \"1 s\"").empty());
  for (const std::string option : {"uid_first", "compile_uid_first"}) {
    CHECK(errors_of("[grader]\n" + option + " = 2147000000").empty());
    CHECK(errors_of("[grader]\n" + option + " = 2147000001").size() == 1);
  }
  CHECK(errors_of("[http]\nacknowledge_timeout = \"999 ms\"").size() == 1);
  CHECK(errors_of("[http]\nacknowledge_timeout = \"1 s\"\nrequest_timeout = \"1 s\"").empty());
  CHECK(errors_of("[http]\nacknowledge_timeout = \"1 h\"").empty());
  CHECK(errors_of("[http]\nacknowledge_timeout = \"61 min\"").size() == 1);
}

TEST_CASE("the table: every option in a section, named once, documented, its default in range") {
  std::set<std::string> keys, names;
  for (const Section& s : sections()) names.insert(s.name);
  for (const Option& o : options()) {
    CAPTURE(o.key);
    CHECK(keys.insert(o.key).second);
    CHECK(names.count(o.key.substr(0, o.key.find('.'))) == 1);
    CHECK(o.doc.size() > 5);
    CHECK_FALSE(o.expects.empty());
  }
}

TEST_CASE("docs/configuration.md is what kbenchd config --reference prints") {
  std::ifstream file("docs/configuration.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  INFO("mend it with: kbenchd config --reference > docs/configuration.md");
  CHECK(text == reference());
}
