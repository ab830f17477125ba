#include "daemon/engine/streams.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace kbench::engine;

namespace {

std::vector<std::string> split(const std::vector<std::string_view>& pieces, std::size_t bytes_max = 1000) {
  std::vector<std::string> objects;
  JsonSplitter splitter(bytes_max, [&](std::string_view object) { objects.emplace_back(object); });
  for (const std::string_view piece : pieces) splitter.feed(piece);
  return objects;
}

struct Frame {
  int source;
  std::string data;
  bool operator==(const Frame&) const = default;
};

std::vector<Frame> demux(const std::vector<std::string_view>& pieces) {
  std::vector<Frame> frames;
  LogDemuxer demuxer(1000, [&](LogDemuxer::Source source, std::string_view data) {
    if (!frames.empty() && frames.back().source == static_cast<int>(source)) {
      frames.back().data += data;
    } else {
      frames.push_back({static_cast<int>(source), std::string(data)});
    }
  });
  for (const std::string_view piece : pieces) demuxer.feed(piece);
  CHECK(demuxer.between());
  return frames;
}

}  // namespace

TEST_CASE("JSON objects come whole, wherever the stream is cut") {
  const std::string stream = "{\"a\":\"}{\\\"\\\\\"}\r\n{\"b\":{\"c\":[{}]}} {\"d\":1}\n";
  const std::vector<std::string> whole = {R"({"a":"}{\"\\"})", R"({"b":{"c":[{}]}})", R"({"d":1})"};
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    const std::string_view view = stream;
    REQUIRE(split({view.substr(0, cut), view.substr(cut)}) == whole);
  }
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < stream.size(); ++i) bytes.push_back(std::string_view(stream).substr(i, 1));
  CHECK(split(bytes) == whole);
}

TEST_CASE("JSON splitter: limits and rubbish") {
  CHECK(split({"{\"a\":12}"}, 8).size() == 1);
  CHECK_THROWS_AS(split({"{\"a\":12}"}, 7), BadStream);
  CHECK_THROWS_AS(split({"<html>"}), BadStream);
  CHECK_THROWS_AS(split({"{} x"}), BadStream);
  JsonSplitter open(100, [](std::string_view) {});
  open.feed("{\"a\":");
  CHECK_FALSE(open.between());
}

TEST_CASE("log frames come right, wherever the stream is cut") {
  const std::string stream = std::string("\1\0\0\0\0\0\0\5hello", 13) + std::string("\2\0\0\0\0\0\0\3err", 11) +
                             std::string("\1\0\0\0\0\0\0\0", 8) + std::string("\3\0\0\0\0\0\0\1x", 9);
  const std::vector<Frame> whole = {{1, "hello"}, {2, "err"}, {3, "x"}};
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    const std::string_view view = stream;
    REQUIRE(demux({view.substr(0, cut), view.substr(cut)}) == whole);
  }
}

TEST_CASE("log demuxer refuses unknown kinds and long frames") {
  LogDemuxer demuxer(16, [](LogDemuxer::Source, std::string_view) {});
  CHECK_NOTHROW(demuxer.feed(std::string("\1\0\0\0\0\0\0\x10", 8) + "0123456789abcdef"));
  CHECK_THROWS_AS(demuxer.feed(std::string_view("\1\0\0\0\0\0\0\x11", 8)), BadStream);
  LogDemuxer other(16, [](LogDemuxer::Source, std::string_view) {});
  CHECK_THROWS_AS(other.feed("plain text"), BadStream);
}

TEST_CASE("text of strangers is made safe to show") {
  CHECK(sanitised("a\x1b[91mred\x1b[0m\tb\n") == "ared\tb\n");
  CHECK(sanitised("\x1b]0;title\x07x") == "x");
  CHECK(sanitised("\x1b]0;title\x1b\\x") == "x");
  CHECK(sanitised("\x1b") == "");
  CHECK(sanitised(std::string_view("a\0\b\x7f\rb", 6)) == "ab");
  CHECK(sanitised("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
  const std::string mark = "\xef\xbf\xbd";
  CHECK(sanitised("\xff\xc3") == mark + mark);             // no lead, cut
  CHECK(sanitised("\xc0\x80") == mark + mark);             // overlong
  CHECK(sanitised("\xed\xa0\x80") == mark + mark + mark);  // surrogate
  CHECK(sanitised("\xf4\x90\x80\x80") == mark + mark + mark + mark);
  CHECK(sanitised("\xc2\x9b"
                  "31m") == "31m");  // C1 control
}

TEST_CASE("a flood leaves the end of a text") {
  TailText tail(10);
  for (int i = 0; i < 1000; ++i) tail.add("0123456789");
  tail.add("ab");
  CHECK(tail.text() == "[the beginning was cut]\n23456789ab");
  TailText exact(10);
  exact.add("0123456789");
  CHECK(exact.text() == "0123456789");
  exact.add("a");
  CHECK(exact.text() == "[the beginning was cut]\n123456789a");
  TailText big(4);
  big.add("0123456789");
  CHECK(big.text() == "[the beginning was cut]\n6789");
}
