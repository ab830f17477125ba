#include "daemon/config/units.h"

#include <charconv>
#include <cmath>
#include <iterator>

namespace kbench::config {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t of;
};
constexpr std::int64_t kKi = 1024;
// Ascending, those that are written first among equals.
constexpr Unit kSizes[] = {
    {"B", 1}, {"KiB", kKi}, {"MiB", kKi* kKi}, {"GiB", kKi* kKi* kKi}, {"TiB", kKi* kKi* kKi* kKi}};
constexpr Unit kDecimalSizes[] = {
    {"kB", 1'000}, {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}};
constexpr Unit kTimes[] = {{"ms", 1}, {"s", 1'000}, {"min", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

template <std::size_t N>
std::optional<std::int64_t> factor(std::string_view name, const Unit (&units)[N]) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.of;
  }
  return {};
}

struct Quantity {
  double number;
  std::string_view unit;
};

std::optional<Quantity> quantity(std::string_view text) {
  Quantity q{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), q.number);
  if (error != std::errc() || !std::isfinite(q.number) || q.number < 0) return {};
  q.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!q.unit.empty() && q.unit.front() == ' ') q.unit.remove_prefix(1);
  return q;
}

std::optional<std::int64_t> whole(double number, std::int64_t of) {
  const double value = number * static_cast<double>(of);
  if (value >= 9.2e18 || value != std::floor(value)) return {};
  return static_cast<std::int64_t>(value);
}

template <std::size_t N>
std::string text_in_largest(std::int64_t value, const Unit (&units)[N]) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.of == 0) best = &unit;
  }
  return std::to_string(value / best->of) + " " + std::string(best->name);
}

}  // namespace

std::optional<std::int64_t> bytes_in(std::string_view text) {
  const auto q = quantity(text);
  if (!q) return {};
  auto of = factor(q->unit, kSizes);
  if (!of) of = factor(q->unit, kDecimalSizes);
  return of ? whole(q->number, *of) : std::nullopt;
}

std::string bytes_text(std::int64_t bytes) { return text_in_largest(bytes, kSizes); }

std::optional<std::chrono::milliseconds> duration_in(std::string_view text) {
  const auto q = quantity(text);
  const auto of = q ? factor(q->unit, kTimes) : std::nullopt;
  const auto value = of ? whole(q->number, *of) : std::nullopt;
  if (!value) return {};
  return std::chrono::milliseconds(*value);
}

std::string duration_text(std::chrono::milliseconds time) { return text_in_largest(time.count(), kTimes); }

}  // namespace kbench::config
