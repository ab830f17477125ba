#include "daemon/grader/images.h"

#include <future>

#include "daemon/grader/specs.h"
#include "test/unit/grader/lab.h"

using namespace kbench;
using namespace kbench::test;

namespace {

struct Gallery : Lab {
  engine::Engine engine{engine_options};
  std::function<void(const std::string&)> quiet = [](const std::string&) {};
  Containers containers{engine, quiet};
  std::atomic<gpu::Mode> mode = gpu::Mode::none;
  WorkFolder work_folder{options.work_folder};
  Images images{options, work_folder, engine, containers, mode, attach_options, "", quiet};
  const Task& task = *tasks.find(kScan);
};

}  // namespace

TEST_CASE("an image's name is the hash of all that enters it") {
  Gallery gallery;
  const std::string first = gallery.images.environment(gallery.task, "cpu", {}).id();
  CHECK(gallery.images.environment(gallery.task, "cpu", {}).id() == first);
  CHECK(gallery.fake.count("POST /build") == 1);
  std::filesystem::copy("tasks", gallery.folder + "/tasks", std::filesystem::copy_options::recursive);
  const Tasks copies(gallery.folder + "/tasks");
  const Task& copy = *copies.find(kScan);
  CHECK(gallery.images.environment(copy, "cpu", {}).id() == first);
  std::ofstream(copy.folder + "/environment/task.h", std::ios::app) << "// changed\n";
  const std::string changed = gallery.images.environment(copy, "cpu", {}).id();
  CHECK(changed != first);
  gallery.options.base_cpu = "kbench/base:new";
  gallery.fake.add_image("kbench/base:new");
  CHECK(gallery.images.environment(copy, "cpu", {}).id() != changed);
}

TEST_CASE("the judge's reference is compiled in a container of ours and put into the image") {
  Gallery gallery;
  std::string context;
  gallery.behave("reference", [](const FakeJob& job, std::stop_token killed) {
    CHECK(std::filesystem::exists(job.mounts.at("/tests") + "/reference.h"));
    return compiles_reference(job, killed);
  });
  const FakeReply built = gallery.fake.built();
  gallery.fake.script("POST /build", [&](const FakeRequest& request) {
    context = request.body;
    return built;
  });
  gallery.images.judge(gallery.task, "cpu", 190'000, {});
  CHECK(context.find("reference-cpu.so") != std::string::npos);
  CHECK(gallery.fake.containers().empty());
  gallery.behave("reference",
                 [](const FakeJob&, std::stop_token) { return FakeEnd{.exit_code = 2, .log = "syntax error"}; });
  CHECK_THROWS_WITH(
      gallery.images.judge(*gallery.tasks.find("norm-rope-fusion/fused-residual-add-rmsnorm"), "cpu", 190'000, {}),
      Catch::Contains("syntax error"));
}

TEST_CASE("those who wait for a build share its failure, and the next one tries again") {
  Gallery gallery;
  FakeReply failing{.body = R"({"errorDetail":{"message":"no"}})", .chunk_bytes = 3, .delay = milliseconds(200)};
  gallery.fake.script("POST /build", failing);
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        try {
          gallery.images.environment(gallery.task, "cpu", {});
        } catch (const InfraFault&) {
          ++failed;
        }
      });
  }
  CHECK(failed == 4);
  CHECK(gallery.fake.count("POST /build") == 1);
  CHECK_NOTHROW(gallery.images.environment(gallery.task, "cpu", {}));
}

TEST_CASE("pruning: the oldest first, never one in use, never one of somebody else") {
  Gallery gallery;
  const std::string foreign = gallery.fake.add_image("kbench/env:theirs", "kbench.image-owner=other");
  std::vector<std::string> ids;
  {
    const auto pinned = gallery.images.environment(gallery.task, "cpu", {});
    ids = {pinned.id(), gallery.images.judge(gallery.task, "cpu", 190'000, {}).id()};
    gallery.options.images_bytes_max = -1;
    CHECK(gallery.images.prune());
    CHECK(gallery.engine.image(ids[0]));
    CHECK_FALSE(gallery.engine.image(ids[1]));
  }
  gallery.options.images_bytes_max = 1 << 30;
  const std::string third = gallery.images.judge(gallery.task, "cpu", 190'000, {}).id();
  CHECK(gallery.images.prune());
  CHECK(gallery.engine.image(ids[0]));  // young, and there is room
  {
    const auto pinned = gallery.images.environment(gallery.task, "cpu", {});
    CHECK(gallery.images.prune(true));  // the disk is full: all that nobody uses
    CHECK(gallery.engine.image(ids[0]));
    CHECK_FALSE(gallery.engine.image(third));
  }
  gallery.options.image_age_max = std::chrono::hours(-1);
  CHECK(gallery.images.prune());
  CHECK_FALSE(gallery.engine.image(ids[0]));
  CHECK(gallery.engine.image(foreign));
  CHECK(gallery.engine.image("kbench/base:cpu"));
}

TEST_CASE("pruning takes what builds have left, with a step's container, but nothing that is used or somebody else's") {
  Gallery gallery;
  const std::string ours = "kbench.image=env,kbench.image-owner=lab";
  const auto container_of = [&](const std::string& image, const std::string& name, bool of_attempt) {
    engine::ContainerSpec spec =
        reference_spec(gallery.options, {image, "cpu", name, gallery.folder, gallery.folder, 190'000}, "");
    spec.name = name;
    spec.labels = {{kImageOwnerLabel, "lab"}, {"kbench.kind", "measure"}};
    if (of_attempt) spec.labels[kOwnerLabel] = "lab";
    return gallery.engine.create(spec);
  };
  const auto there = [&](const std::string& id) { return gallery.engine.image(id).has_value(); };
  const std::string left = gallery.fake.add_image("", ours), step = gallery.fake.add_image("", ours);
  const std::string cut = container_of(step, "boring_name", false);
  const std::string theirs = gallery.fake.add_image("", "kbench.image=env,kbench.image-owner=other");
  const std::string unknown = gallery.fake.add_image("", "kbench.image-owner=lab");
  const std::string runs = gallery.fake.add_image("", ours), waits = gallery.fake.add_image("", ours);
  gallery.behave("measure", until_killed);
  const engine::Run run = gallery.engine.start(container_of(runs, "an-agents-own", false));
  const std::string attempt = container_of(waits, "an-attempts", true);
  std::optional<Images::Pinned> pinned = gallery.images.environment(gallery.task, "cpu", {});
  const std::string id = pinned->id();
  gallery.fake.add_image(gallery.engine.image(id)->tags.at(0), ours);  // by a build thought dead
  CHECK(gallery.images.prune());
  CHECK_FALSE(there(left));
  CHECK_FALSE(there(step));
  CHECK_FALSE(gallery.engine.inspect(cut));
  for (const std::string& spared : {theirs, unknown, runs, waits, id}) CHECK(there(spared));
  CHECK(gallery.engine.inspect(attempt));
  pinned.reset();
  CHECK(gallery.images.prune());
  CHECK_FALSE(there(id));
}

TEST_CASE("pruning waits for no build") {
  Gallery gallery;
  std::atomic<bool> building = false, go = false;
  gallery.fake.script("POST /build", FakeReply{.stream = [&](FakeWire&, const auto& chunk) {
                        building = true;
                        while (!go) std::this_thread::sleep_for(milliseconds(1));
                        chunk(R"({"errorDetail":{"message":"no"}})");
                        return true;
                      }});
  auto builder = std::async(std::launch::async, [&] { gallery.images.environment(gallery.task, "cpu", {}); });
  gallery.wait_until([&] { return building.load(); });
  CHECK_FALSE(gallery.images.prune());
  go = true;
  CHECK_THROWS(builder.get());
  CHECK(gallery.images.prune());
}
