// How an option of each type is read and shown; for the table in options.cpp.
#pragma once

#include <concepts>
#include <limits>

#include "daemon/config/options.h"
#include "daemon/config/units.h"

namespace kbench::config {

// `place` gives the member of a Config that an option sets: [](auto& c) -> auto& { return c.server.port; }

template <class Place>
Option number(std::string key, Place place, std::int64_t min, std::int64_t max, std::string doc,
              const std::string& noun = "a whole number") {
  Option o{
      std::move(key), noun + " (" + std::to_string(min) + ".." + std::to_string(max) + ")", std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* n = std::get_if<std::int64_t>(&value);
    if (!n || *n < min || *n > max) return false;
    auto& target = place(c);
    target = static_cast<std::remove_reference_t<decltype(target)>>(*n);
    return true;
  };
  o.show = [=](const Config& c) { return std::to_string(place(c)); };
  return o;
}

template <class Place>
Option size(std::string key, Place place, std::int64_t min, std::int64_t max, std::string doc) {
  Option o{std::move(key), "a size within " + bytes_text(min) + ".." + bytes_text(max), std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    std::optional<std::int64_t> n;
    if (const auto* text = std::get_if<std::string>(&value)) n = bytes_in(*text);
    if (const auto* plain = std::get_if<std::int64_t>(&value)) n = *plain;
    if (!n || *n < min || *n > max) return false;
    auto& target = place(c);
    target = static_cast<std::remove_reference_t<decltype(target)>>(*n);
    return true;
  };
  o.show = [=](const Config& c) { return quoted(bytes_text(static_cast<std::int64_t>(place(c)))); };
  return o;
}

template <class Place>
Option duration(std::string key, Place place, std::chrono::milliseconds min, std::chrono::milliseconds max,
                std::string doc) {
  Option o{std::move(key), "a time within " + duration_text(min) + ".." + duration_text(max), std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    const auto time = text ? duration_in(*text) : std::nullopt;
    if (!time || *time < min || *time > max) return false;
    auto& target = place(c);
    target = std::chrono::duration_cast<std::remove_reference_t<decltype(target)>>(*time);
    return true;
  };
  o.show = [=](const Config& c) { return quoted(duration_text(place(c))); };
  return o;
}

template <class Place>
Option text(
    std::string key, Place place, std::string noun, std::string doc,
    const std::function<bool(const std::string&)>& good = [](const std::string& s) { return !s.empty(); }) {
  Option o{std::move(key), std::move(noun), std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* s = std::get_if<std::string>(&value);
    if (!s || !good(*s) || s->find('\0') != std::string::npos) return false;
    place(c) = *s;
    return true;
  };
  o.show = [=](const Config& c) { return quoted(place(c)); };
  return o;
}

// A time that the target holds in seconds.
template <class Place>
Option seconds(std::string key, Place place, std::chrono::milliseconds min, std::chrono::milliseconds max,
               std::string doc) {
  Option o{std::move(key), "a time within " + duration_text(min) + ".." + duration_text(max), std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* written = std::get_if<std::string>(&value);
    const auto time = written ? duration_in(*written) : std::nullopt;
    if (!time || *time < min || *time > max) return false;
    place(c) = std::chrono::duration<double>(*time).count();
    return true;
  };
  o.show = [=](const Config& c) {
    return quoted(duration_text(std::chrono::milliseconds(static_cast<std::int64_t>(place(c) * 1000))));
  };
  return o;
}

// A list of texts, each of which `add` understands or refuses; `list` gives them back.
Option texts(std::string key, std::string noun, std::string doc, const std::function<void(Config&)>& clear,
             const std::function<bool(Config&, const std::string&)>& add,
             const std::function<std::vector<std::string>(const Config&)>& list);

template <class Place>
Option flag(std::string key, Place place, std::string doc) {
  Option o{std::move(key), "true or false", std::move(doc), {}, {}};
  o.set = [=](Config& c, const Value& value) {
    const auto* b = std::get_if<bool>(&value);
    if (b) place(c) = *b;
    return b != nullptr;
  };
  o.show = [=](const Config& c) { return std::string(place(c) ? "true" : "false"); };
  return o;
}

}  // namespace kbench::config
