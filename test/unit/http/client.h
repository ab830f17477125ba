// A client that sends exactly the bytes it is told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace kbench::test {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient& operator=(RawClient&&) = delete;

  bool send(std::string_view bytes);  // false: the peer has closed
  void half_close();
  void vanish();  // from now on nothing that is sent to it arrives, nor is it told so: as if its machine had lost power
  // One answer: head and, by its Content-Length, body. What was read beyond it is kept for the next. Empty: closed, or
  // nothing came.
  std::string answer(std::chrono::milliseconds patience = std::chrono::seconds(5), bool head_only = false);
  // Reads until `text` has come; all that was read so far.
  std::string until(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(5));
  bool closed(std::chrono::milliseconds patience = std::chrono::seconds(5));  // reads on to the end of the stream

 private:
  bool read_more(std::chrono::steady_clock::time_point deadline);
  int socket_ = -1;
  std::string seen_;
};

inline int status_of(const std::string& answer) { return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3)); }
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace kbench::test
