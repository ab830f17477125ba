#include "daemon/store/connection.h"

#include <soci/sqlite3/soci-sqlite3.h>

namespace kbench::store {

Connection::Connection(const std::string& sqlite_parameters) try : session_(soci::sqlite3, sqlite_parameters) {
} catch (const soci::soci_error& e) {
  throw StoreFault(e.get_error_message());
}

// Not `session << sql`: that goes through a class whose type information the library keeps to itself, which UBSan
// wants.
void Connection::execute(const std::string& sql) try {
  soci::statement s(session_);
  s.alloc();
  s.prepare(sql);
  s.define_and_bind();
  s.execute(true);
} catch (const soci::soci_error& e) {
  throw StoreFault(e.get_error_message());
}

std::string Connection::text(const std::string& sql) try {
  std::string value;
  soci::indicator set = soci::i_null;
  soci::statement s(session_);
  s.exchange(soci::into(value, set));
  s.alloc();
  s.prepare(sql);
  s.define_and_bind();
  s.execute(true);
  return value;
} catch (const soci::soci_error& e) {
  throw StoreFault(e.get_error_message());
}

soci::statement& Connection::prepared(const std::string& sql) {
  if (const auto known = statements_.find(sql); known != statements_.end()) return known->second;
  soci::statement s(session_);
  s.alloc();
  s.prepare(sql);
  return statements_.emplace(sql, s).first->second;
}

}  // namespace kbench::store
