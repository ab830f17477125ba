#include <catch2/catch.hpp>

#include "daemon/http/http.h"
#include "daemon/http/router.h"
#include "daemon/http/target.h"
#include "daemon/http/wire.h"

using namespace kbench::http;

namespace {

Problem fault_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Problem& p) {
    return p;
  }
  return Problem{0, "", "", "", ""};
}

std::string form(std::string text) {  // '|' stands for CRLF
  for (std::size_t at; (at = text.find('|')) != std::string::npos;) text.replace(at, 1, "\r\n");
  return text;
}

}  // namespace

TEST_CASE("a target is split, then decoded") {
  const auto t = decode_target("/api/v1/tasks/a%20b?x=1%2B1&y=a+b&flag&z=");
  CHECK(t.segments == std::vector<std::string>{"api", "v1", "tasks", "a b"});
  CHECK(t.query == std::map<std::string, std::string>{{"x", "1+1"}, {"y", "a b"}, {"flag", ""}, {"z", ""}});
  CHECK(decode_target("/").segments.empty());
  CHECK(decode_target("http://host:1/a/b?c=d").segments == std::vector<std::string>{"a", "b"});
  CHECK(decode_target("http://host").segments.empty());
  CHECK(decode_target("/%C3%A4").segments[0] == "\xc3\xa4");
}

TEST_CASE("a target that could mean another resource is refused") {
  for (const char* bad : {"", "*", "a/b", "/a/../b", "/a/%2e%2e/b", "/./a", "/a//b", "/a/", "/a%2Fb", "/a%00b",
                          "/a%0ab", "/%zz", "/%4", "/%", "/a?x=%0d", "/%c0%af", "/%ff", "/a?x=1&x=2", "/a?x=%f"}) {
    INFO(bad);
    CHECK(fault_of([&] { decode_target(bad); }).status == 400);
  }
  CHECK(fault_of([&] { decode_target("/a?limit=1&limit=2"); }).field == "limit");
}

TEST_CASE("routes: literals before placeholders, 405 lists the methods") {
  Router router;
  const auto make = [&](const char* method, const char* pattern) {
    router.add(method, pattern, Access::open, [](const Request&) { return Response(); });
  };
  make("GET", "/s/{id}");
  make("DELETE", "/s/{id}");
  make("GET", "/s/new");
  make("POST", "/s");
  make("GET", "/");
  CHECK(router.find("GET", {"s", "7"}).path_values.at("id") == "7");
  CHECK(router.find("GET", {"s", "new"}).path_values.empty());
  CHECK(router.find("HEAD", {"s", "7"}).route->method == "GET");
  CHECK(router.find("GET", {}).route != nullptr);
  CHECK(router.find("POST", {"s", "7"}).route == nullptr);
  CHECK(router.find("POST", {"s", "7"}).allow == "DELETE, GET, HEAD");
  CHECK(router.find("GET", {"s"}).allow == "POST");
  CHECK(router.find("GET", {"s", "7", "x"}).allow.empty());
  CHECK_THROWS_AS(make("GET", "/s/{id}"), std::logic_error);
}

TEST_CASE("UTF-8") {
  for (const char* good : {"", "a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(valid_utf8(good));
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xff", "a\xc3", "\xe2\x82", "\xc3(", "\xf0\x9f\x98"}) {
    INFO(bad);
    CHECK_FALSE(valid_utf8(bad));
  }
}

TEST_CASE("an event's text") {
  CHECK(event_text(7, "progress", "{}") == "id: 7\nevent: progress\ndata: {}\n\n");
  CHECK(event_text(0, "x", "a\nb\r\nc\rd") == "event: x\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
  CHECK(event_text(0, "x", "") == "event: x\ndata: \n\n");
  CHECK(event_text(0, "x", "a\n") == "event: x\ndata: a\ndata: \n\n");
}

TEST_CASE("problem+json names the field and the fix, whatever bytes the client sent") {
  const auto r = problem({422, "bad-name", "name \xff", "Use \"ASCII\".", "name", 3, {{"name", "t", "d"}}});
  CHECK(r.status == 422);
  CHECK(r.content_type == "application/problem+json");
  CHECK(r.headers.at("Retry-After") == "3");
  CHECK(r.body ==
        "{\"type\":\"urn:kbench:bad-name\",\"title\":\"name \xef\xbf\xbd\",\"status\":422,\"detail\":\"Use "
        "\\\"ASCII\\\".\","
        "\"field\":\"name\",\"errors\":[{\"field\":\"name\",\"title\":\"t\",\"detail\":\"d\"}]}\n");
}

TEST_CASE("an answer's head") {
  Response r;
  r.body = "12345";
  CHECK(head_of(r, {}).find("Content-Length: 5\r\n") != std::string::npos);
  CHECK(head_of(r, {Framing::chunked, false, false}).find("Transfer-Encoding: chunked\r\n") != std::string::npos);
  CHECK(head_of(r, {Framing::chunked, false, false}).find("Connection: close\r\n\r\n") != std::string::npos);
  CHECK(head_of(r, {Framing::length, true, true}).find("Connection: keep-alive\r\n") != std::string::npos);
  r.headers["Location"] = "/a\r\nX: y";
  CHECK_THROWS_AS(head_of(r, {}), std::logic_error);
  r = Response();
  r.status = 204;
  CHECK(head_of(r, {}).find("\nContent-") == std::string::npos);
  CHECK(chunk_of("0123456789abcdef") == "10\r\n0123456789abcdef\r\n");
}

TEST_CASE("multipart: fields and files") {
  const auto body = form(
      "preamble|--B|Content-Disposition: form-data; name=\"task\"||a task|--B|"
      "content-disposition: form-data; filename=\"dir/a\\\"b.cu\"; name=file|Content-Type: text/plain||line|--|end|"
      "|--B|Content-Disposition: form-data; name=empty|||--B--|epilogue");
  const auto parts = parse_multipart("multipart/form-data; boundary=B", body, 3, "x.parts");
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].name == "task");
  CHECK(parts[0].content == "a task");
  CHECK(parts[1].name == "file");
  CHECK(parts[1].filename == "dir/a\"b.cu");
  CHECK(parts[1].content_type == "text/plain");
  CHECK(parts[1].content == "line\r\n--\r\nend\r\n");
  CHECK(parts[2].content.empty());
  CHECK(parse_multipart("multipart/form-data; charset=x; boundary=\"B\"",
                        form("--B|"
                             "Content-Disposition: form-data; name=a||x|--B--"),
                        9, "x.parts")
            .size() == 1);
  CHECK(parse_multipart("multipart/form-data; boundary=B", "--B--", 9, "x.parts").empty());
  const auto many = fault_of([&] { parse_multipart("multipart/form-data; boundary=B", body, 2, "x.parts"); });
  CHECK(many.status == 413);
  CHECK(many.detail == "Send at most 2 parts (x.parts).");
}

TEST_CASE("multipart: malformed bodies are refused") {
  const std::string type = "multipart/form-data; boundary=B";
  const std::string good = "--B|Content-Disposition: form-data; name=a||x|--B--";
  const std::pair<std::string, std::string> bad[] = {
      {"multipart/form-data", good},
      {"multipart/form-data; boundary=", good},
      {"multipart/form-data; boundary=\"B", good},
      {"multipart/form-data; boundary=B; boundary=C", good},
      {"multipart/form-data; boundary=" + std::string(71, 'x'), good},
      {type, ""},
      {type, "no boundary"},
      {type, "--B|Content-Disposition: form-data; name=a||x"},
      {type, "--B|Content-Disposition: form-data; name=a||x|--B"},
      {type, "--BContent-Disposition: form-data; name=a||x|--B--"},
      {type, "--B|Content-Disposition: form-data; name=a|x|--B--"},
      {type, "--B|Content-Disposition: form-data||x|--B--"},
      {type, "--B|Content-Disposition: attachment; name=a||x|--B--"},
      {type, "--B|no colon||x|--B--"},
      {type, "--B|Content-Disposition: form-data; name=\"a||x|--B--"},
      {type, "--B|Content-Disposition: form-data; name=a; filename*=UTF-8''x||x|--B--"},
      {type, "--B|Content-Disposition: form-data; name=a; filename=\"\xff\"||x|--B--"},
      {type, "--B|Content-Disposition: form-data; name=a|Content-Transfer-Encoding: base64||eA==|--B--"},
      {type, "--B|Content-Disposition: form-data; name=a|X: " + std::string(5000, 'x') + "||x|--B--"},
  };
  for (const auto& [content_type, body] : bad) {
    INFO(content_type << " / " << body);
    CHECK(fault_of([&, t = content_type, b = form(body)] { parse_multipart(t, b, 9, "x.parts"); }).status == 400);
  }
}
