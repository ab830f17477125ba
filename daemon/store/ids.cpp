#include "daemon/store/ids.h"

#include <sys/random.h>

#include <cstring>
#include <utility>

namespace kbench::store {

namespace {

constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kTimeCharacters = 10, kChanceCharacters = 16;
constexpr unsigned __int128 kChanceEnd = static_cast<unsigned __int128>(1) << 80;

unsigned __int128 draw() {
  unsigned char bytes[10];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw StoreFault("no random bytes from the kernel");
  unsigned __int128 value = 0;
  for (const unsigned char b : bytes) value = (value << 8) | b;
  return value;
}

}  // namespace

std::string Ids::next(Millis now) {
  Millis time = 0;
  unsigned __int128 chance = 0;
  {
    const std::lock_guard lock(mutex_);
    if (now > time_) {
      time_ = now;
      chance_ = draw();
    } else if (++chance_ == kChanceEnd) {
      ++time_;
      chance_ = 0;
    }
    time = time_;
    chance = chance_;
  }
  std::string id(2 + kTimeCharacters + kChanceCharacters, '-');
  id[0] = 's';
  // From the last character to the first, five bits each.
  for (std::size_t at = id.size(); at > 2 + kTimeCharacters; chance >>= 5) id[--at] = kAlphabet[chance & 31];
  for (std::size_t at = 2 + kTimeCharacters; at > 2; time >>= 5) id[--at] = kAlphabet[time & 31];
  return id;
}

void Ids::follow(const std::string& id) {
  Millis time = 0;
  unsigned __int128 chance = 0;
  const auto digit = [&](std::size_t at) { return std::strchr(kAlphabet, id[at]) - kAlphabet; };
  for (std::size_t at = 2; at < 2 + kTimeCharacters; ++at) time = (time << 5) | digit(at);
  for (std::size_t at = 2 + kTimeCharacters; at < id.size(); ++at)
    chance = (chance << 5) | static_cast<unsigned>(digit(at));
  const std::lock_guard lock(mutex_);
  if (std::pair(time, chance) <= std::pair(time_, chance_)) return;
  time_ = time;
  chance_ = chance;
}

bool is_id(const std::string& text) {
  return text.size() == 2 + kTimeCharacters + kChanceCharacters && text.compare(0, 2, "s-") == 0 &&
         text.find_first_not_of(kAlphabet, 2) == std::string::npos;
}

}  // namespace kbench::store
