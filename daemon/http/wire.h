// The head of an answer as bytes. Pure but for the date.
#pragma once

#include "daemon/http/http.h"

namespace kbench::http {

enum class Framing : std::uint8_t { length, chunked, until_close };
struct Manner {
  Framing framing = Framing::length;
  bool keep_alive = true;
  bool http10 = false;
};

// A header value with a line break in it is a bug of the handler: throws std::logic_error.
std::string head_of(const Response& response, const Manner& manner);

const char* reason_of(int status);

std::string chunk_of(std::string_view text);  // one chunk of Transfer-Encoding: chunked; `text` not empty
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace kbench::http
