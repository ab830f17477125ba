// Rule 2 and images.
#include <nlohmann/json.hpp>
#include <thread>

#include "test/unit/engine/support.h"

using namespace kbench::test;

namespace {

BuildSpec spec_of() {
  BuildSpec spec;
  spec.context = {{"Dockerfile", "FROM x\n"}};
  spec.tags = {"kbench/env:abc"};
  spec.labels = {{"kbench.image", "env"}};
  spec.args = {{"KBENCH_BASE", "sha256:1"}};
  return spec;
}

FakeReply stream(const std::string& body, std::size_t chunk = 1) { return {.body = body, .chunk_bytes = chunk}; }

}  // namespace

TEST_CASE("a build sends the context, the classic builder's switches, and gives an id") {
  Stage stage;
  std::map<std::string, std::string> query;
  std::string body, log;
  const FakeReply built = stage.fake.built("\x1b[91mStep 1\x1b[0m\n");
  stage.fake.script("POST /build", [&](const FakeRequest& request) {
    query = request.query;
    body = request.body;
    return built;
  });
  const std::string id = stage.engine.build(spec_of(), [&](std::string_view text) { log += text; });
  CHECK(id.starts_with("sha256:"));
  CHECK(log == "Step 1\n");
  CHECK(body == write_tar({{"Dockerfile", "FROM x\nLABEL kbench.image=env\n"}}));
  CHECK(query["version"] == "1");
  CHECK(query["rm"] == "1");
  CHECK(query["forcerm"] == "1");
  CHECK(query["networkmode"] == "none");
  CHECK(query["t"] == "kbench/env:abc");
  CHECK(query["labels"] == R"({"kbench.image":"env"})");
  CHECK(query["buildargs"] == R"({"KBENCH_BASE":"sha256:1"})");
  CHECK_FALSE(query.contains("q"));
  CHECK_FALSE(query.contains("pull"));
}

TEST_CASE("every stage of a build begins with its labels, so that what is left of one is known") {
  Stage stage;
  std::string body;
  const FakeReply built = stage.fake.built();
  stage.fake.script(
      "POST /build",
      [&](const FakeRequest& request) {
        body = request.body;
        return built;
      },
      2);
  BuildSpec spec = spec_of();
  spec.labels["kbench.image-owner"] = "me";
  spec.context = {{"Dockerfile",
                   "# escape=\\\nARG A=x\nfrom $A \\\n  # of\n  AS one\r\nRUN echo \\\nFROM \\  \n\n&& true\n"
                   "FROMAGE\n  FROM\tone\nFR\\\n# of\nOM two\nCOPY . /"},
                  {"sub/Dockerfile", "FROM x\n"}};
  stage.engine.build(spec);
  const std::string label = "LABEL kbench.image=env kbench.image-owner=me\n";
  spec.context[0].content = "# escape=\\\nARG A=x\nfrom $A \\\n  # of\n  AS one\r\n" + label +
                            "RUN echo \\\nFROM \\  \n\n&& true\nFROMAGE\n  FROM\tone\n" + label +
                            "FR\\\n# of\nOM two\n" + label + "COPY . /\n";
  CHECK(body == write_tar(spec.context));
  spec.labels = {{"a", "b c"}};
  CHECK(error_of([&] { stage.engine.build(spec); }).kind == Kind::bad_request);
  spec.labels = {};
  stage.engine.build(spec);
  CHECK(body == write_tar(spec.context));
}

TEST_CASE("rule 2: a 200 is no success: errors inside the stream, split anywhere") {
  Stage stage;
  const std::string failing =
      R"({"stream":"Step 2/2 : RUN false\n"})"
      "\r\n"
      R"({"errorDetail":{"code":1,"message":"The command returned a non-zero code: 1"},"error":"The command"})"
      "\r\n";
  for (std::size_t chunk = 1; chunk <= failing.size(); ++chunk) {
    stage.fake.script("POST /build", stream(failing, chunk));
    const EngineError error = error_of([&] { stage.engine.build(spec_of()); });
    REQUIRE(error.kind == Kind::failed);
    REQUIRE(std::string(error.what()).find("non-zero code: 1\nStep 2/2 : RUN false") != std::string::npos);
  }
}

TEST_CASE("rule 2: an id followed by an error is an error") {
  Stage stage;
  stage.fake.script("POST /build",
                    stream(R"({"aux":{"ID":")" + stage.image + R"("}}{"errorDetail":{"message":"tagging failed"}})"));
  CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::failed);
}

TEST_CASE("rule 2: a stream without an id, cut, or of rubbish is an error") {
  Stage stage;
  const std::string good = R"({"stream":"x"})"
                           "\r\n"
                           R"({"aux":{"ID":")" +
                           stage.image + "\"}}\r\n";
  SECTION("no id") {
    stage.fake.script("POST /build", stream(R"({"stream":"Step 1\n"})"));
    CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::failed);
  }
  SECTION("cut at every byte, though the id was there") {
    for (std::size_t cut = 0; cut <= good.size(); ++cut) {
      stage.fake.script("POST /build", FakeReply{.body = good, .chunk_bytes = 5, .cut_after = cut});
      REQUIRE(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::unreachable);
    }
  }
  SECTION("a proper end inside a message") {
    stage.fake.script("POST /build", stream(good + R"({"stream":)"));
    CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::unreachable);
  }
  SECTION("rubbish") {
    stage.fake.script("POST /build", stream("<html>bad gateway</html>"));
    CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::failed);
    stage.fake.script("POST /build", stream("{rubbish}"));
    CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::failed);
  }
  SECTION("the image is not there afterwards") {
    stage.fake.script("POST /build", stream(R"({"aux":{"ID":"sha256:gone"}})"));
    CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::failed);
  }
}

TEST_CASE("a full disk is told apart, as status and inside the stream") {
  Stage stage;
  stage.fake.script("POST /build", fake_error(500, "write /x: no space left on device"));
  CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::no_space);
  stage.fake.script("POST /build", stream(R"({"errorDetail":{"message":"ApplyLayer: no space left on device"}})"));
  CHECK(error_of([&] { stage.engine.build(spec_of()); }).kind == Kind::no_space);
}

TEST_CASE("an early refusal stops a large upload") {
  Stage stage;
  BuildSpec spec = spec_of();
  spec.context.push_back({"big", std::string(64u << 20, 'x')});
  FakeReply refusal = fake_error(400, "dockerfile parse error");
  refusal.unread_body = true;
  stage.fake.script("POST /build", refusal);
  CHECK(error_of([&] { stage.engine.build(spec); }).kind == Kind::bad_request);
}

TEST_CASE("stopping a build closes its connection at once") {
  Stage stage;
  std::atomic<bool> gone = false;
  stage.fake.script("POST /build", FakeReply{.stream = [&](FakeWire& wire, const auto& chunk) {
                      chunk(R"({"stream":"Step 1\n"})");
                      while (!wire.gone()) std::this_thread::sleep_for(milliseconds(1));
                      gone = true;
                      return true;
                    }});
  std::stop_source stop;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(error_of([&] {
          stage.engine.build(spec_of(), [&](std::string_view) { stop.request_stop(); }, stop.get_token());
        }).kind == Kind::cancelled);
  CHECK(std::chrono::steady_clock::now() - begin < kPatience);
  while (!gone) std::this_thread::sleep_for(milliseconds(1));
}

TEST_CASE("a bad context and a long message are errors before they do harm") {
  Stage stage;
  BuildSpec spec = spec_of();
  spec.context.push_back({"../x", ""});
  CHECK(error_of([&] { stage.engine.build(spec); }).kind == Kind::failed);
  CHECK(stage.fake.count("POST /build") == 0);
  Options options = stage.quick();
  options.build_message_bytes_max = 100;
  Engine engine(options);
  stage.fake.script("POST /build", stream(R"({"stream":")" + std::string(100, 'x') + "\"}", 50));
  CHECK(error_of([&] { engine.build(spec_of()); }).kind == Kind::failed);
}

TEST_CASE("images: found, listed by label, tagged, removed") {
  Stage stage;
  CHECK_FALSE(stage.engine.image("kbench/none:1"));
  CHECK(stage.engine.image("kbench/env:1")->id == stage.image);
  const std::string mine = stage.fake.add_image("kbench/judge:1", "kbench.image=judge");
  REQUIRE(stage.engine.images("kbench.image").size() == 1);
  CHECK(stage.engine.images("kbench.image").at(0).id == mine);
  CHECK(stage.engine.images("kbench.image").at(0).labels.at("kbench.image") == "judge");
  stage.engine.tag(mine, "kbench/judge", "2");
  CHECK(stage.fake.image_tags().contains("kbench/judge:2"));
  stage.engine.remove_image(mine);
  CHECK_NOTHROW(stage.engine.remove_image(mine));
  CHECK_FALSE(stage.engine.image("kbench/judge:2"));
  stage.fake.script("DELETE /images/", fake_error(409, "image is being used by running container"));
  CHECK(error_of([&] { stage.engine.remove_image(stage.image); }).kind == Kind::conflict);
}
