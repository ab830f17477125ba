#include "daemon/api/input.h"

#include <kbench/sources.h>

#include <catch2/catch.hpp>

#include "test/unit/api/fixture.h"

using namespace kbench;
using namespace kbench::api;
using kbench::test::some_slots;
using kbench::test::some_tasks;

namespace {

Draft good() {
  Draft d;
  d.task = "raw-cuda/segmented-exclusive-scan";
  d.device = "cpu";
  d.files = {{"b/solution.cpp", "b"}, {"a.h", "a"}};
  return d;
}

http::Problem fault_of(const Draft& draft, const Limits& limits = {},
                       const std::vector<SlotStatus>& slots = some_slots()) {
  try {
    checked(draft, some_tasks(), slots, limits);
  } catch (const http::Problem& p) {
    return p;
  }
  return {0, "", "", "", ""};
}

http::Problem unread(const std::string& type, const std::string& body) {
  http::Request request;
  request.headers["content-type"] = type;
  request.body = body;
  try {
    read_draft(request, {});
  } catch (const http::Problem& p) {
    return p;
  }
  return {0, "", "", "", ""};
}

}  // namespace

TEST_CASE("what is left out is filled in") {
  auto d = good();
  const auto s = checked(d, some_tasks(), some_slots(), {});
  CHECK(s.task == "raw-cuda/segmented-exclusive-scan");
  CHECK(s.task_hash == "h1");
  CHECK(s.language == "cpp");
  CHECK(s.gpus == 0);
  CHECK(s.files[0].path == "a.h");
  CHECK(s.source_hash.size() == 64);
  d.task = "segmented-exclusive-scan";
  d.device = "";
  CHECK(checked(d, some_tasks(), some_slots(), {}).device == "cuda");
  CHECK(checked(d, some_tasks(), some_slots(), {}).gpus == 1);
  CHECK(checked(d, some_tasks(), {some_slots()[0]}, {}).device == "cpu");
  d.files.push_back({"k.cu", ""});
  CHECK(checked(d, some_tasks(), some_slots(), {}).language == "cuda");
  d.files = {{"solution.py", ""}};
  CHECK(checked(d, some_tasks(), some_slots(), {}).language == "python");
  d.files = {{"k.cu", ""}};
  d.task = "comm/all-reduce";
  d.gpu_model = "NVIDIA H200";
  CHECK(checked(d, some_tasks(), some_slots(), {}).gpus == 2);
}

TEST_CASE("hashes: of the sources in any order; of the request whatever was filled in") {
  auto d = good();
  const auto a = checked(d, some_tasks(), some_slots(), {});
  std::swap(d.files[0], d.files[1]);
  CHECK(checked(d, some_tasks(), some_slots(), {}).source_hash == a.source_hash);
  CHECK(checked(d, some_tasks(), some_slots(), {}).body_hash == a.body_hash);
  d.labels["x"] = "y";
  CHECK(checked(d, some_tasks(), some_slots(), {}).source_hash == a.source_hash);
  CHECK(checked(d, some_tasks(), some_slots(), {}).body_hash != a.body_hash);
  d = good();
  d.files = {{"b/solution.cppb", ""}, {"a.h", "a"}};  // the same bytes, cut elsewhere
  d.language = "cpp";
  d.files.push_back({"x.cpp", ""});
  auto e = d;
  e.files[0] = {"b/solution.cpp", "b"};
  CHECK(checked(d, some_tasks(), some_slots(), {}).source_hash !=
        checked(e, some_tasks(), some_slots(), {}).source_hash);
  d = good();
  d.device = "";
  CHECK(checked(d, some_tasks(), some_slots(), {}).body_hash ==
        checked(d, some_tasks(), {some_slots()[0]}, {}).body_hash);
}

TEST_CASE("every fault names its field, and all come at once") {
  const auto field = [](auto change) {
    auto d = good();
    change(d);
    const auto p = fault_of(d);
    CHECK((p.status == 422 || p.status == 413));
    CHECK_FALSE(p.detail.empty());
    return p.field;
  };
  CHECK(field([](Draft& d) { d.task = ""; }) == "task");
  CHECK(field([](Draft& d) { d.task = "nothing"; }) == "task");
  CHECK(field([](Draft& d) { d.task = "copy"; }) == "task");
  CHECK(field([](Draft& d) { d.device = "tpu"; }) == "device");
  CHECK(field([](Draft& d) { d.language = "fortran"; }) == "language");
  CHECK(field([](Draft& d) { d.language = "python"; }) == "files");
  CHECK(field([](Draft& d) { d.language = "cuda"; }) == "language");  // on the cpu
  CHECK(field([](Draft& d) { d.files.clear(); }) == "files");
  CHECK(field([](Draft& d) { d.files = {{"readme.md", ""}}; }) == "files");
  CHECK(field([](Draft& d) { d.files.push_back({"solution.py", ""}); }) == "language");
  CHECK(field([](Draft& d) { d.priority = 11; }) == "priority");
  CHECK(field([](Draft& d) { d.priority = INT64_MIN; }) == "priority");
  CHECK(field([](Draft& d) { d.gpu_model = "NVIDIA H200"; }) == "gpu_model");
  CHECK(field([](Draft& d) { d.labels["a b"] = ""; }) == "labels[\"a b\"]");
  CHECK(field([](Draft& d) { d.labels["a"] = "x\ny"; }) == "labels[\"a\"]");
  CHECK(field([](Draft& d) { d.files[0].content = "\xff"; }) == "files[\"b/solution.cpp\"]");
  CHECK(field([](Draft& d) { d.files[0].content = std::string("a\0b", 3); }) == "files[\"b/solution.cpp\"]");
  CHECK(field([](Draft& d) { d.files.push_back({"b", ""}); }) == "files[\"b\"]");  // a file and a folder
  CHECK(field([](Draft& d) { d.files.push_back({"a.h", ""}); }) == "files[\"a.h\"]");
  for (const char* path : {"", "/etc/passwd", "../x.cpp", "a/../../x.cpp", "a//b.cpp", "a/", "./a.cpp", ".git/config",
                           "-o.cpp", "a/-I.cpp", "a/b/c/d/e/x.cpp", "__pycache__/x.cpp", "a/__pycache__", "a b.cpp",
                           "a\nb.cpp", "\xc3\xa4.cpp", "a\\b.cpp", "a:b", "$(x).cpp"}) {
    INFO(path);
    CHECK(field([&](Draft& d) { d.files[0].path = path; }) == "files[\"" + std::string(path) + "\"]");
  }
  auto d = good();
  d.task = "nothing";
  d.priority = 99;
  d.files[0].path = "/x.cpp";
  CHECK(fault_of(d).errors.size() == 3);
  d.device = "tpu";
  d.language = "fortran";
  CHECK(fault_of(d).errors.size() == 5);
  d = good();
  d.files.clear();
  CHECK(fault_of(d).errors.size() == 1);
}

TEST_CASE("names are as deep and as long as the verifier takes them, and no more") {
  auto d = good();
  d.files.push_back({"a/b/c/d/x.h", ""});
  d.files.push_back({std::string(sources::kNameBytesMax - 2, 'n') + ".h", ""});
  CHECK(fault_of(d).status == 0);
  d.files.back().path.insert(0, "n");
  const auto fault = fault_of(d);
  CHECK(fault.status == 422);
  CHECK(fault.field == "files[\"" + d.files.back().path + "\"]");
  CHECK(fault.detail.find("at most 100 characters between two /") != std::string::npos);
}

TEST_CASE("the device and the GPUs must be there") {
  auto d = good();
  d.device = "cuda";
  d.files = {{"k.cu", ""}};
  CHECK(fault_of(d, {}, {some_slots()[0]}).field == "device");
  d.gpu_model = "NVIDIA B200";
  CHECK(fault_of(d).field == "gpu_model");
  d.gpu_model = "";
  d.task = "comm/all-reduce";
  CHECK(fault_of(d).status == 0);
  CHECK(fault_of(d, {}, {some_slots()[1]}).field == "task");
  d.device = "";
  CHECK(fault_of(d, {}, {some_slots()[0]}).field == "device");
}

TEST_CASE("limits hold at their edges") {
  Limits limits;
  limits.files_max = 3;
  limits.file_bytes_max = 10;
  limits.files_bytes_max = 25;
  limits.path_bytes_max = 12;
  limits.labels_max = 2;
  limits.label_name_bytes_max = 4;
  limits.label_value_bytes_max = 5;
  auto d = good();
  d.files = {{"12345678.cpp", std::string(10, 'x')}, {"b", std::string(10, 'x')}, {"c", std::string(5, 'x')}};
  d.labels = {{"abcd", "12345"}, {"b", ""}};
  CHECK(fault_of(d, limits).status == 0);
  auto e = d;
  e.files.push_back({"d", ""});
  CHECK(fault_of(e, limits).status == 413);
  e = d;
  e.files[0].content += "x";
  CHECK(fault_of(e, limits).status == 413);
  e = d;
  e.files[2].content += "x";
  CHECK(fault_of(e, limits).field == "files");
  CHECK(fault_of(e, limits).status == 413);
  e = d;
  e.files[0].path = "123456789.cpp";
  CHECK(fault_of(e, limits).status == 422);
  e = d;
  e.labels["c"] = "";
  CHECK(fault_of(e, limits).field == "labels");
  e = d;
  e.labels = {{"abcde", ""}};
  CHECK(fault_of(e, limits).field == "labels[\"abcd\"]");
  e = d;
  e.labels = {{"a", "123456"}};
  CHECK(fault_of(e, limits).field == "labels[\"a\"]");
}

TEST_CASE("an unknown task: near names") {
  std::string fix;
  CHECK(find_task(some_tasks(), "raw-cuda/segmented-exclusive-scam", fix) == nullptr);
  CHECK(fix == "Did you mean raw-cuda/segmented-exclusive-scan? GET /api/v1/tasks lists them all.");
  CHECK(find_task(some_tasks(), "rmsnorm", fix) == nullptr);
  CHECK(fix.find("fused-residual-add-rmsnorm?") != std::string::npos);
  CHECK(find_task(some_tasks(), "copy", fix) == nullptr);
  CHECK(fix == "Did you mean other/copy, raw-cuda/copy? GET /api/v1/tasks lists them all.");
  CHECK(find_task(some_tasks(), "zzzzzzzzz", fix) == nullptr);
  CHECK(fix == "GET /api/v1/tasks lists them all.");
  const auto tasks = some_tasks();
  CHECK(find_task(tasks, "all-reduce", fix) == &tasks[2]);
}

TEST_CASE("malformed requests") {
  const std::string json = "application/json; charset=utf-8";
  CHECK(unread("text/plain", "{}").status == 415);
  CHECK(unread("", "{}").field == "Content-Type");
  for (const char* body : {"", "{", "[]", "1", "{\"task\":}", "{\"task\":\"a\",\"task\":\"b\"}", "{} x",
                           "{\"task\":\"\xff\"}", "{\"files\":{\"a\":\"\",\"a\":\"\"}}", "8E888",
                           "{\"priority\":1e400}", "{\"files\":[[[[[[[[[[[[[[]]]]]]]]]]]]]]}"}) {
    INFO(body);
    CHECK(unread(json, body).status == 400);
  }
  CHECK(unread(json, std::string(100'000, '[')).status == 400);
  CHECK(unread(json, R"({"task":"a","colour":"red"})").field == "colour");
  CHECK(unread(json, R"({"task":1})").field == "task");
  for (const std::string name : {"device", "language", "gpu_model"}) {
    CHECK(unread(json, R"({"task":"a",")" + name + R"(":""})").field == name);
    CHECK(unread("multipart/form-data; boundary=B",
                 "--B\r\nContent-Disposition: form-data; name=" + name + "\r\n\r\n\r\n--B--")
              .field == name);
  }
  CHECK(unread(json, R"({"files":["a"]})").field == "files");
  CHECK(unread(json, R"({"files":{"a.cpp":1}})").field == "files[\"a.cpp\"]");
  CHECK(unread(json, R"({"labels":{"a":null}})").field == "labels[\"a\"]");
  CHECK(unread(json, R"({"priority":"1"})").field == "priority");
  CHECK(unread(json, R"({"priority":1.5})").field == "priority");
  CHECK(unread(json, R"({"priority":18446744073709551615})").field == "priority");  // not -1
  CHECK(unread(json, R"({"priority":9223372036854775808})").field == "priority");
  CHECK(unread(json, R"({"priority":9223372036854775807})").status == 0);
}

TEST_CASE("what is no UTF-8, and a name that comes twice, is named with its place") {
  const struct {
    const char *body, *field, *title;
  } cases[] = {{"{\"task\":\"\xff\"}", "task", "task is not UTF-8"},
               {"{\"files\":{\"a.h\":\"\",\"b.h\":\"x\xc3\"}}", "files[\"b.h\"]", "files[\"b.h\"] is not UTF-8"},
               {"{\"labels\":{\"a\":\"\xed\xa0\x80\"}}", "labels[\"a\"]", "labels[\"a\"] is not UTF-8"},
               {"{\"files\":{\"a.h\":\"\",\"\x80\":\"\"}}", "files", "a name in files is not UTF-8"},
               {"{\"files\":{},\"\xc0\xaf\":1}", "body", "a name in body is not UTF-8"},
               {"{\"files\":[\"a\",\"\xff\"]}", "files[1]", "files[1] is not UTF-8"},
               {"{\"task\":\"a\"}\xff", "body", "body is not UTF-8"},
               {"\xff", "body", "body is not UTF-8"},
               {"{\"task\":\"a\",\"task\":\"b\"}", "task", "task given twice"},
               {"{\"files\":{\"a.h\":\"\",\"b.h\":\"\",\"a.h\":\"\"}}", "files[\"a.h\"]", "files[\"a.h\"] given twice"},
               {"{\"files\":{\"a.h\":\"\"},\"labels\":{\"l\":\"\"},\"files\":{}}", "files", "files given twice"},
               {"{\"labels\":{\"a\":\"\",\"\\u0061\":\"\"}}", "labels[\"a\"]", "labels[\"a\"] given twice"},
               {"{\"task\": ", "body", "malformed JSON at byte 10, in task"},
               {"", "body", "the body is empty"},
               {"{\"priority\":1e400}", "priority", "a number that is too large"},
               {"{\"files\":{\"a.h\":\"a\nb\"}}", "body", "malformed JSON at byte 19, in files[\"a.h\"]"},
               {"{\"task\":\"a\" \"\xff\"}", "body", "a name in body is not UTF-8"},
               {"{\"task\":\"a\",,\"device\":\"\xff\"}", "body", "malformed JSON at byte 13"}};
  for (const auto& one : cases) {
    INFO(one.body);
    const auto fault = unread("application/json", one.body);
    CHECK(fault.status == 400);
    CHECK(fault.field == one.field);
    CHECK(fault.title == one.title);
    CHECK_FALSE(fault.detail.empty());
  }
  CHECK(unread("application/json", R"({"files":{"a":"same","b":"same"},"labels":{"a":"","b":""}})").status == 0);
}

TEST_CASE("a limit that is passed is named, with its value and its option") {
  Limits limits;
  limits.files_max = 1;
  limits.file_bytes_max = 3;
  limits.files_bytes_max = 5;
  limits.path_bytes_max = 20;
  limits.labels_max = 1;
  limits.label_name_bytes_max = 2;
  limits.label_value_bytes_max = 4;
  const auto detail = [&](auto change) {
    auto d = good();
    d.files = {{"a.cpp", "int"}};
    change(d);
    return fault_of(d, limits).detail;
  };
  CHECK(detail([](Draft& d) { d.files.push_back({"b.cpp", ""}); }) == "Send at most 1 files (submissions.files_max).");
  CHECK(detail([](Draft& d) { d.files[0].content = "int "; }) ==
        "Send at most 3 bytes (submissions.file_bytes_max) a file.");
  CHECK(detail([](Draft& d) {
          d.files[0].path = std::string(21, 'x');
        }).find("20 characters (submissions.path_bytes_max)") != std::string::npos);
  CHECK(detail([](Draft& d) { d.labels = {{"a", ""}, {"b", ""}}; }) ==
        "Send at most 1 labels (submissions.labels_max).");
  CHECK(detail([](Draft& d) { d.labels = {{"abc", ""}}; }).find("2 bytes (submissions.label_name_bytes_max)") !=
        std::string::npos);
  CHECK(detail([](Draft& d) { d.labels = {{"a", "12345"}}; }).find("4 bytes (submissions.label_value_bytes_max)") !=
        std::string::npos);
  CHECK(detail([](Draft& d) { d.priority = 99; }) == "Send -10 to 10 (submissions.priority_min and priority_max).");
  limits.files_max = 2;
  CHECK(detail([](Draft& d) { d.files.push_back({"b.cpp", "int"}); }) ==
        "Send at most 5 bytes (submissions.files_bytes_max).");
  std::string many = "{\"files\":{";
  for (int i = 0; i < 1000; ++i) many += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  CHECK(unread("application/json", many + "}}").detail ==
        "Send at most 64 files (submissions.files_max) and 16 labels (submissions.labels_max).");
}

TEST_CASE("a submission of more values than it can have is refused while it is read") {
  const Limits limits;
  const auto with = [](const char* field, std::size_t count) {
    std::string body = "{\"" + std::string(field) + "\":{";
    for (std::size_t i = 0; i < count; ++i) body += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
    return unread("application/json", body + "}}");
  };
  // Up to twice the limits every fault is named by what checks a draft.
  CHECK(with("files", 2 * (limits.files_max + limits.labels_max)).status == 0);
  CHECK(with("files", 2 * (limits.files_max + limits.labels_max) + 64).status == 413);
  CHECK(with("labels", 1'000'000).status == 413);
  std::string numbers = "{\"files\":[0";
  for (int i = 0; i < 1'000'000; ++i) numbers += ",0";
  CHECK(unread("application/json", numbers + "]}").status == 413);
}

TEST_CASE("a form") {
  const auto part = [](const std::string& name, const std::string& content, const std::string& more = "") {
    return "--B\r\nContent-Disposition: form-data; name=\"" + name + "\"" + more + "\r\n\r\n" + content + "\r\n";
  };
  http::Request request;
  request.headers["content-type"] = "multipart/form-data; boundary=B";
  request.body = part("task", "t") + part("device", "cpu") + part("priority", "-3") + part("label", "a=b=c") +
                 part("label", "d=") + part("file", "int x;\n", "; filename=\"src/a.cpp\"") +
                 part("file", "", "; filename=\"b.h\"") + "--B--\r\n";
  const auto d = read_draft(request, {});
  CHECK(d.task == "t");
  CHECK(d.priority == -3);
  CHECK(d.labels == std::map<std::string, std::string>{{"a", "b=c"}, {"d", ""}});
  REQUIRE(d.files.size() == 2);
  CHECK(d.files[0].path == "src/a.cpp");
  CHECK(d.files[0].content == "int x;\n");
  const std::string type = request.headers["content-type"];
  CHECK(unread(type, part("colour", "red") + "--B--").field == "colour");
  CHECK(unread(type, part("task", "a") + part("task", "b") + "--B--").field == "task");
  CHECK(unread(type, part("label", "a") + "--B--").field == "label");
  CHECK(unread(type, part("label", "a=1") + part("label", "a=2") + "--B--").field == "labels[\"a\"]");
  CHECK(unread(type, part("file", "x") + "--B--").field == "file");
  for (const char* number : {"1x", " 5", "+5", "5 ", "", "0x5", "5.0", "--5", "9223372036854775808"}) {
    INFO(number);
    CHECK(unread(type, part("priority", number) + "--B--").field == "priority");
  }
  CHECK(unread(type, part("task", "a")).status == 400);
}
