#include "daemon/http/router.h"

#include <set>
#include <stdexcept>

#include "daemon/http/target.h"

namespace kbench::http {
namespace {

bool placeholder(const std::string& segment) { return segment.starts_with('{'); }

bool fits(const Route& route, const std::vector<std::string>& segments) {
  if (route.pattern.size() != segments.size()) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!placeholder(route.pattern[i]) && route.pattern[i] != segments[i]) return false;
  }
  return true;
}

}  // namespace

void Router::add(std::string method, std::string_view pattern, Access access, Handler handler, Work work) {
  Route route{std::move(method), decode_target(pattern).segments, access, std::move(handler), work};
  auto place = routes_.begin();
  for (auto it = routes_.begin(); it != routes_.end(); ++it) {
    if (it->method == route.method && it->pattern == route.pattern) {
      throw std::logic_error("route given twice: " + route.method + " " + std::string(pattern));
    }
  }
  // '{' sorts after letters and digits, so the order of the patterns puts literals before placeholders.
  while (place != routes_.end() && place->pattern < route.pattern) ++place;
  routes_.insert(place, std::move(route));
}

Match Router::find(std::string_view method, const std::vector<std::string>& segments) const {
  const std::string_view wanted = method == "HEAD" ? std::string_view("GET") : method;
  std::set<std::string> allowed;
  for (const auto& route : routes_) {
    if (!fits(route, segments)) continue;
    if (route.method != wanted) {
      allowed.insert(route.method);
      if (route.method == "GET") allowed.insert("HEAD");
      continue;
    }
    Match match{&route, {}, {}};
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto& name = route.pattern[i];
      if (placeholder(name)) match.path_values.emplace(name.substr(1, name.size() - 2), segments[i]);
    }
    return match;
  }
  Match none;
  for (const auto& name : allowed) none.allow += (none.allow.empty() ? "" : ", ") + name;
  return none;
}

}  // namespace kbench::http
