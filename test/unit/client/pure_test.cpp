#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "client/client.h"

using namespace kbench::client;
using namespace std::chrono_literals;

namespace {

std::string parsed(const std::vector<std::string>& pieces) {
  EventParser parser;
  std::string out;
  for (const auto& piece : pieces) {
    parser.feed(piece, [&](const Event& e) { out += e.id + "|" + e.type + "|" + e.data + ";"; });
  }
  return out;
}

Event event(const std::string& type, const std::string& data, int attempt = 1) {
  return {"1", type, R"({"seq":1,"attempt":)" + std::to_string(attempt) + R"(,"data":)" + data + "}"};
}

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kbench-client-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << content;
    return path / name;
  }
};

}  // namespace

TEST_CASE("an event stream, cut anywhere") {
  const std::string text =
      ": beat\r\nid: 7\r\nevent: state\r\ndata: {\"a\":1}\r\n\r\nid:8\ndata:x\ndata: y\n\n:\n\nevent: empty\n\nretry: "
      "5\ndata\n\ndata: cr\r\rdata: tail";
  const std::string expected = "7|state|{\"a\":1};8|message|x\ny;8|message|;8|message|cr;";
  CHECK(parsed({text}) == expected);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(parsed({text.substr(0, cut), text.substr(cut)}) == expected);
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  CHECK(parsed(bytes) == expected);
}

TEST_CASE("an event without end is refused") {
  EventParser parser;
  const std::string block(1 << 16, 'x');
  const auto feed = [&] {
    for (int i = 0; i < 20; ++i) parser.feed(block, [](const Event&) {});
  };
  CHECK_THROWS_AS(feed(), Unreachable);
  EventParser lines;
  const auto feed_lines = [&] {
    for (int i = 0; i < 20; ++i) lines.feed("data: " + block + "\n", [](const Event&) {});
  };
  CHECK_THROWS_AS(feed_lines(), Unreachable);
}

TEST_CASE("progress") {
  Progress p;
  CHECK(p.line() == "queued");
  p.take(event("state", R"({"state":"preparing"})"));
  CHECK(p.line() == "preparing");
  p.take(event("phase", R"({"phase":"compile"})"));
  CHECK(p.line() == "preparing  compile");
  p.take(event("state", R"({"state":"measuring"})"));
  p.take(event("progress", R"({"run":2,"runs":5,"repetition":7,"repetitions":18})"));
  CHECK(p.line() == "measuring  run 2 of 5  repetition 7 of 18");
  p.take({"", "progress", "no JSON"});
  p.take({"", "progress", "[]"});
  p.take({"", "state", R"({"data":7})"});
  CHECK(p.line() == "measuring  run 2 of 5  repetition 7 of 18");
  p.take(event("state", R"({"state":"queued","cause":"engine: \u001b[2J\u009b2J\u00e4gone"})", 2));
  CHECK(p.line() == "queued (attempt 2)  again: engine: \\x1b[2J\\xc2\\x9b2J\u00e4gone");
  CHECK_FALSE(p.ended());
  p.take(event("result", "{}"));
  CHECK(p.ended());
}

TEST_CASE("exit codes and text of a submission") {
  CHECK(exit_code_of(R"({"state":"done","verdict":"correct"})") == kOk);
  CHECK(exit_code_of(R"({"state":"done","verdict":"incorrect"})") == kNotCorrect);
  CHECK(exit_code_of(R"({"state":"done","verdict":"compile_error"})") == kNotCorrect);
  CHECK(exit_code_of(R"({"state":"failed","verdict":"infra_error"})") == kInfra);
  CHECK(exit_code_of(R"({"state":"cancelled","verdict":null})") == kCancelled);
  CHECK(exit_code_of(R"({"state":"measuring","verdict":null})") == kOk);
  CHECK(
      verdict_line(
          R"({"state":"done","verdict":"correct","reward":1234.5678,"interval":[1,2],"metric":"GB/s","reason":null})") ==
      "correct  1235 GB/s  [1, 2]");
  CHECK(
      verdict_line(R"({"state":"done","verdict":"incorrect","reward":0.0,"metric":"GB/s","reason":"out[3]\u001b"})") ==
      "incorrect  0 GB/s\n  out[3]\\x1b");
  const auto text = described(
      R"({"id":"s-1","task":"a/b","device":"cpu","state":"queued","cancel_requested":true,"labels":{"x":"y"}})");
  CHECK(text.find("state       queued, cancel requested\n") != std::string::npos);
  CHECK(text.find("label       x=y\n") != std::string::npos);
  CHECK(text.find("verdict") == std::string::npos);
}

TEST_CASE("a server's texts change no terminal, and its JSON means the same then") {
  CHECK(harmless("a\r\x1b[2J\x7f\tb\n\u009b\u00e4") == "a\\x0d\\x1b[2J\\x7f\tb\n\\xc2\\x9b\u00e4");
  CHECK(harmless_json("{\"a\":\"\x7f\u009b\u00e4\"}\r\n") == "{\"a\":\"\\u007f\\u009b\u00e4\"}\n");
  CHECK(harmless_json("\xc2") == "\xc2");
  const std::string deep(100'000, '[');
  for (const auto& text : {deep + std::string(deep.size(), ']'), deep}) {
    CHECK_THROWS(described(text));
    CHECK_THROWS(verdict_line(text));
    CHECK_THROWS(exit_code_of(text));
  }
}

TEST_CASE("pauses grow, heed the server, and are bounded") {
  CHECK(pause_before(1, "") == 200ms);
  CHECK(pause_before(3, "") == 800ms);
  CHECK(pause_before(1000, "") == 5s);
  CHECK(pause_before(1, "7") == 7s);
  CHECK(pause_before(1, "99999") == 30s);
  CHECK(pause_before(1, "soon") == 200ms);
  CHECK(pause_before(1, "-1") == 200ms);
  CHECK(encoded("a/b ü~") == "a%2Fb%20%C3%BC~");
}

TEST_CASE("files of a submission") {
  const Folder folder;
  const auto cpp = folder.write("one/solution.cpp", "a");
  folder.write("one/include/x.h", "b");
  folder.write("one/.git/config", "no");
  folder.write("one/.hidden", "no");
  const auto header = folder.write("two/solution.cpp", "c");
  CHECK(gathered({cpp}) == std::map<std::string, std::string>{{"solution.cpp", "a"}});
  folder.write("one/__pycache__/solution.py", "left alone");
  CHECK(gathered({(folder.path / "one").string()}) ==
        std::map<std::string, std::string>{{"solution.cpp", "a"}, {"include/x.h", "b"}});
  CHECK_THROWS_WITH(gathered({cpp, header}), Catch::Contains("second file of the name solution.cpp"));
  CHECK_THROWS_WITH(gathered({folder.write("bad.cpp", "\xff")}), Catch::Contains("not UTF-8"));
  CHECK_THROWS_WITH(gathered({"/nothing/here.cpp"}), Catch::Contains("no such file"));
  CHECK_THROWS_AS(gathered({"/dev/null"}), UsageError);
  CHECK_THROWS_AS(gathered({}), UsageError);
  std::filesystem::create_symlink(header, folder.path / "one/include/key.h");
  CHECK_THROWS_WITH(gathered({(folder.path / "one").string()}), Catch::Contains("key.h: a link"));
}

TEST_CASE("the token of a file, and who else may read it") {
  const Folder folder;
  const auto path = folder.write("token", "kb_secret \r\nmore\n");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  CHECK(token_in(path).token == "kb_secret");
  CHECK(token_in(path).warning.empty());
  for (const unsigned mode : {0640U, 0604U, 0620U}) {
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    CHECK(token_in(path).token == "kb_secret");
    CHECK(token_in(path).warning == path + " may be read or written by other users: chmod 600 " + path);
  }
  CHECK(token_in(path + "-none").token.empty());
  CHECK(token_in(path + "-none").warning.empty());
}
