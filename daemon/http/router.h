// Which handler a request goes to. Filled before the server listens, only read after that. Pure.
#pragma once

#include <list>

#include "daemon/http/http.h"

namespace kbench::http {

struct Route {
  std::string method;
  std::vector<std::string> pattern;  // "{id}" takes any one segment
  Access access;
  Handler handler;
  Work work = Work::slow;
};

struct Match {
  const Route* route = nullptr;  // null: see `allow`
  std::map<std::string, std::string> path_values;
  std::string allow;  // methods of a known path; empty: the path is unknown
};

class Router {
 public:
  // Throws std::logic_error for a pattern and method given twice.
  void add(std::string method, std::string_view pattern, Access access, Handler handler, Work work = Work::slow);
  // HEAD goes where GET goes. A literal segment is preferred to a placeholder.
  Match find(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  std::list<Route> routes_;
};

}  // namespace kbench::http
