// Sizes and times with their units, as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kbench::config {

// "16 MiB", "64KiB", "1.5 GiB", "2 MB", "100 B". nullopt for anything else, and past 2^63.
std::optional<std::int64_t> bytes_in(std::string_view text);
std::string bytes_text(std::int64_t bytes);  // exact, in the largest binary unit that divides it

// "500 ms", "30 s", "5 min", "2 h", "7 d".
std::optional<std::chrono::milliseconds> duration_in(std::string_view text);
std::string duration_text(std::chrono::milliseconds time);

}  // namespace kbench::config
