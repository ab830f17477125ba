#include <catch2/catch.hpp>
#include <random>

#include "test/unit/store/support.h"

using namespace kbench::store;
using namespace kbench::store::test;

namespace {

// A grader's and a submitter's calls in random order, right and wrong attempts alike.
struct Chaos {
  Fixture& f;
  std::mt19937 random;
  std::vector<std::string> ids;
  std::map<std::string, int> accepted;  // results per submission

  int draw(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  void step() {
    Store& store = *f.store;
    if (ids.empty() || draw(6) == 0) {
      NewSubmission s = sample("u" + std::to_string(draw(4)));
      s.priority = draw(3);
      s.device = draw(2) ? "cpu" : "cuda";
      s.gpus = s.device == "cpu" ? 0 : 1 + draw(2);
      ids.push_back(submit(store, s));
      return;
    }
    const std::string id = ids[static_cast<std::size_t>(draw(static_cast<int>(ids.size())))];
    const int attempt = store.get(id)->attempt - (draw(4) == 0);
    switch (draw(9)) {
      case 0:
      case 1:
        store.claim(
            {"g" + std::to_string(draw(2)), {"cpu", "cuda"}, draw(3), {}, std::chrono::milliseconds(1 + draw(50))});
        break;
      case 2:
        f.clock.now += draw(40);
        break;
      case 3:
        store.renew(id, attempt, 40ms);
        break;
      case 4:
        store.set_state(id, attempt, draw(2) ? State::ready : State::measuring);
        break;
      case 5:
        store.append_event(id, attempt, draw(4), "phase", "{}");
        break;
      case 6: {
        const int kind = draw(3);
        Outcome o = kind == 0 ? correct() : infra("engine: x", draw(4) == 0);
        if (kind == 2) o.kind = Outcome::Kind::cancelled;
        if (store.finish(id, attempt, o, 3) && kind == 0) ++accepted[id];
        break;
      }
      case 7:
        draw(3) == 0 ? void(store.cancel(id)) : void(store.release(id, attempt));
        break;
      case 8:
        store.expire_leases(3);
        break;
    }
  }
};

}  // namespace

TEST_CASE("the store's invariants hold after every call, in random order") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  Fixture f;
  f.options.retry_delay = 10ms;
  f.open();
  Chaos chaos{f, std::mt19937(seed), {}, {}};
  auto db = f.raw();
  for (int step = 0; step < 600; ++step) {
    chaos.step();
    if (step % 3) continue;
    const std::string broken = broken_invariant(db);
    INFO("step " << step);
    REQUIRE(broken == "");
  }
  for (const auto& [id, n] : chaos.accepted) CHECK(n == 1);
}
