// One connection to the database and its prepared statements. Used by one thread at a time.
//
// SQL is written with a differently named placeholder for each argument (":a", ":b", ... in order), so that both SQLite
// and PostgreSQL take it. Every failure of the database becomes a StoreFault.
#pragma once

#include <soci/soci.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "daemon/store/store.h"

namespace kbench::store {

struct BytesIn {
  const std::string& value;
};  // a BLOB argument
struct BytesOut {
  std::string& value;
};  // a BLOB column

namespace detail {

template <class T>
struct From {
  soci::session& session;
  T& value;
};

template <class T>
struct In {
  const T& value;
  In(From<const T> from) : value(from.value) {}
  void bind(soci::statement& s) { s.exchange(soci::use(value)); }
};
template <>
struct In<std::vector<std::string>> {  // as many arguments as it has elements
  const std::vector<std::string>& values;
  In(From<const std::vector<std::string>> from) : values(from.value) {}
  void bind(soci::statement& s) {
    for (const std::string& value : values) s.exchange(soci::use(value));
  }
};
template <>
struct In<std::optional<double>> {
  double value;
  soci::indicator set;
  In(From<const std::optional<double>> from)
      : value(from.value.value_or(0)), set(from.value ? soci::i_ok : soci::i_null) {}
  void bind(soci::statement& s) { s.exchange(soci::use(value, set)); }
};
template <>
struct In<BytesIn> {
  soci::blob blob;
  In(From<const BytesIn> from) : blob(from.session) {
    const std::string& bytes = from.value.value;
    blob.write(0, bytes.empty() ? "" : bytes.data(), std::max<std::size_t>(bytes.size(), 1));
    if (bytes.empty()) blob.trim(0);  // one never written to would be NULL
  }
  void bind(soci::statement& s) { s.exchange(soci::use(blob)); }
};

template <class T>
struct Out {
  T& value;
  Out(From<T> from) : value(from.value) {}
  void bind(soci::statement& s) { s.exchange(soci::into(value)); }
  void take() {}
};
template <>
struct Out<std::optional<double>> {
  std::optional<double>& target;
  double value = 0;
  soci::indicator set = soci::i_null;
  Out(From<std::optional<double>> from) : target(from.value) {}
  void bind(soci::statement& s) { s.exchange(soci::into(value, set)); }
  void take() { target = set == soci::i_ok ? std::optional<double>(value) : std::nullopt; }
};
template <>
struct Out<BytesOut> {
  std::string& target;
  soci::blob blob;
  Out(From<BytesOut> from) : target(from.value.value), blob(from.session) {}
  void bind(soci::statement& s) { s.exchange(soci::into(blob)); }
  void take() {
    target.resize(blob.get_len());
    if (!target.empty()) blob.read(0, target.data(), target.size());
  }
};

}  // namespace detail

class Connection {
 public:
  explicit Connection(const std::string& sqlite_parameters);

  // Rows affected.
  template <class... A>
  std::int64_t change(const std::string& sql, const A&... in) {
    std::int64_t affected = 0;
    with(sql, [&](soci::statement& s) {
      std::tuple<detail::In<A>...> ins(detail::From<const A>{session_, in}...);
      std::apply([&](auto&... i) { (i.bind(s), ...); }, ins);
      s.define_and_bind();
      s.execute(true);
      affected = s.get_affected_rows();
    });
    return affected;
  }

  // Calls `row` after each row has been put into `out`. Always reads to the end: an unfinished read would pin its
  // snapshot.
  template <class... O, class Row, class... A>
  void each(const std::string& sql, std::tuple<O&...> out, Row&& row, const A&... in) {
    with(sql, [&](soci::statement& s) {
      std::tuple<detail::In<A>...> ins(detail::From<const A>{session_, in}...);
      std::apply([&](auto&... i) { (i.bind(s), ...); }, ins);
      std::apply(
          [&](auto&... o) {
            std::tuple<detail::Out<O>...> outs(detail::From<O>{session_, o}...);
            std::apply([&](auto&... x) { (x.bind(s), ...); }, outs);
            s.define_and_bind();
            s.execute(false);
            while (s.fetch()) {
              std::apply([](auto&... x) { (x.take(), ...); }, outs);
              row();
            }
            s.bind_clean_up();
          },
          out);
    });
  }

  // The first row, if any.
  template <class... O, class... A>
  bool one(const std::string& sql, std::tuple<O&...> out, const A&... in) {
    bool found = false;
    each(sql, out, [&] { found = true; }, in...);
    return found;
  }

  void execute(const std::string& sql);      // unprepared: DDL
  std::string text(const std::string& sql);  // one value, unprepared

 private:
  // A statement that failed is forgotten: it may still hold a snapshot.
  template <class F>
  void with(const std::string& sql, F&& use) {
    try {
      soci::statement& s = prepared(sql);
      s.bind_clean_up();
      use(s);
      s.bind_clean_up();
    } catch (const soci::soci_error& e) {
      statements_.erase(sql);
      throw StoreFault(e.get_error_message());
    } catch (...) {
      statements_.erase(sql);
      throw;
    }
  }
  soci::statement& prepared(const std::string& sql);

  soci::session session_;
  std::unordered_map<std::string, soci::statement> statements_;
};

}  // namespace kbench::store
