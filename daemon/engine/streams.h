// Decoders of what the Engine streams, fed in pieces cut anywhere: concatenated JSON objects, multiplexed logs, and
// text for people.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kbench::engine {

struct BadStream : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Cuts a stream of JSON objects into single ones; it does not look inside. Throws BadStream on anything but white space
// between objects and on an object longer than `bytes_max`.
class JsonSplitter {
 public:
  JsonSplitter(std::size_t bytes_max, std::function<void(std::string_view object)> on_object);
  void feed(std::string_view bytes);
  bool between() const { return depth_ == 0; }  // false: the stream ended inside an object

 private:
  std::size_t bytes_max_;
  std::function<void(std::string_view)> on_object_;
  std::string object_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

// Frames of [type, 0, 0, 0, length as 4 bytes big-endian]. Throws BadStream on an unknown type or a length above
// `frame_bytes_max`.
class LogDemuxer {
 public:
  enum class Source : std::uint8_t { in = 0, out = 1, err = 2, daemon = 3 };  // daemon: the Engine itself failed
  LogDemuxer(std::size_t frame_bytes_max, std::function<void(Source, std::string_view)> on_data);
  void feed(std::string_view bytes);
  bool between() const { return left_ == 0 && header_.empty(); }

 private:
  std::size_t frame_bytes_max_;
  std::function<void(Source, std::string_view)> on_data_;
  std::string header_;
  Source source_ = Source::out;
  std::size_t left_ = 0;
};

// Valid UTF-8 without control characters or terminal escapes (line feeds and tabs stay): safe to show and to put into
// JSON.
std::string sanitised(std::string_view text);

// The end of a text, at most `bytes_max` of it, with a line saying that the beginning is missing.
class TailText {
 public:
  explicit TailText(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  void add(std::string_view bytes);
  std::string text() const;  // sanitised

 private:
  std::size_t bytes_max_;
  bool cut_ = false;
  std::string kept_;
};

}  // namespace kbench::engine
