// The worker's page as the verifier takes it: copied once, then checked. Pure.
#pragma once

#include <cmath>
#include <cstring>
#include <string_view>

#include "verifier/protocol/protocol.h"

namespace kbench::protocol {

// Nothing looks at the page itself but for the epoch.
struct Answer {
  std::uint32_t done = 0, status = 0;
  std::int32_t code = 0;
  float call_us = 0;
  char text[sizeof(FromWorker::text)] = {};
};

// Reads bytes one by one through volatile, so that the compiler reads each once; the worker may change them meanwhile,
// and then gets whatever mixture it made.
inline Answer copied(const void* page) {
  static_assert(sizeof(Answer) == sizeof(FromWorker));
  const volatile char* source = static_cast<const volatile char*>(page);
  char raw[sizeof(FromWorker)];
  for (std::size_t i = 0; i < sizeof raw; ++i) raw[i] = source[i];
  Answer answer;
  std::memcpy(&answer, raw, sizeof answer);
  return answer;
}

enum class Taken : std::uint8_t { done, refused, violation };

// As the answer to a call of `epoch`, or to the set-up where that is 0. A time that is none becomes 0.
inline Taken take(Answer& answer, std::uint32_t epoch) {
  if (!std::isfinite(answer.call_us) || answer.call_us < 0) answer.call_us = 0;
  const auto status = static_cast<Status>(answer.status);
  const bool well = status == (epoch == 0 ? Status::ready : Status::done);
  const bool badly = status == Status::failed || (epoch != 0 && status == Status::refused);
  if (answer.done != epoch || !(well || badly)) return Taken::violation;
  return well ? Taken::done : Taken::refused;
}

// Why it failed, in the worker's words: to be escaped before it is shown.
inline std::string_view text_of(const Answer& answer) {
  return {answer.text, strnlen(answer.text, sizeof answer.text)};
}

}  // namespace kbench::protocol
