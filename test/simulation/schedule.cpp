#include "test/simulation/schedule.h"

#include <kbench/events.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "daemon/grader/files.h"
#include "daemon/grader/grader.h"
#include "daemon/grader/specs.h"
#include "daemon/queue/queue.h"
#include "test/simulation/census.h"
#include "test/simulation/disk.h"
#include "test/simulation/fibers.h"
#include "test/simulation/host.h"
#include "test/unit/store/support.h"

namespace kbench::sim {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using store::State;

namespace {

constexpr char kTask[] = "raw-cuda/segmented-exclusive-scan", kGrader[] = "simulated";
constexpr std::int64_t kQuietMs = 6 * 3'600'000;  // by then a machine in good order has done what was left
constexpr std::int64_t kBeginMs = 1'000'000, kBeginWallMs = 1'800'000'000'000;
constexpr std::int64_t kClockMs = 48 * 3'600'000;  // that the clock is set by, at most

const std::map<std::string, std::string> kOurImage = {{grader::kImageLabel, "env"},
                                                      {grader::kImageOwnerLabel, kGrader}};

std::string common_folder, store_path;
Disk empty_disk;
std::unique_ptr<grader::Tasks> tasks;

// What the outside world knows: it survives every death.
struct Truth {
  struct Known {
    std::string key;
    bool cancel_asked = false;
    int attempt = 0;                                  // the highest that was claimed
    bool held = false;                                // by this life of the program, which has not given it up yet
    std::int64_t held_until_ms = 0;                   // at least
    std::string phase;                                // of the attempt, as it said itself; empty: none yet
    std::vector<std::pair<int, std::string>> finals;  // that were accepted: attempt, verdict
    std::optional<store::Submission> ended;           // as first seen
  };
  std::map<std::string, Known> accepted;   // by id
  std::map<std::string, std::string> ids;  // by idempotency key
  Tally tally;

  // To every attempt under way, in the phase that it is in.
  void strike_phases(const char* what) const {
    for (const auto& [id, known] : accepted)
      if (known.held && !known.phase.empty()) count(known.phase + "-phase", what);
  }
};

// The real source, watched.
class Watched : public grader::AttemptSource {
 public:
  Watched(std::unique_ptr<AttemptSource> real, milliseconds lease, Truth& truth)
      : real_(std::move(real)), lease_(lease.count()), truth_(truth) {}

  std::optional<store::Lease> claim(const store::Wanted& wanted, milliseconds wait) override {
    const std::int64_t before = now_ms();
    auto lease = real_->claim(wanted, wait);
    if (!lease) return lease;
    ++truth_.tally.attempts;
    Truth::Known& known = truth_.accepted[lease->submission.id];
    if (lease->attempt <= known.attempt)
      fail(lease->submission.id + ": attempt " + std::to_string(lease->attempt) + " was claimed after attempt " +
           std::to_string(known.attempt));
    if (known.held && now_ms() < known.held_until_ms)
      fail(lease->submission.id + ": the lease of attempt " + std::to_string(known.attempt) + " ended before its time");
    known.attempt = lease->attempt;
    known.held = true;
    known.held_until_ms = before + lease_;
    known.phase.clear();
    perhaps_yield();
    return lease;
  }
  // It may have asked the store, or have done so within the last third of a lease.
  Hold renew(const std::string& id, int attempt) override {
    perhaps_late();
    const std::int64_t before = now_ms();
    const Hold hold = real_->renew(id, attempt);
    Truth::Known& known = truth_.accepted[id];
    if (hold != Hold::lost && attempt == known.attempt)
      known.held_until_ms = std::max(known.held_until_ms, before + lease_ - lease_ / 3 - 2);
    return hold;
  }
  bool state(const std::string& id, int attempt, State state) override { return real_->state(id, attempt, state); }
  bool event(const std::string& id, int attempt, std::int64_t seq, const std::string& type,
             const std::string& json) override {
    Truth::Known& known = truth_.accepted[id];
    if (type == events::kPhase && attempt == known.attempt)
      for (const char* phase : {"image", "compile", "slot", "measure"})
        if (json.find("\"" + std::string(phase) + "\"") != json.npos) {
          known.phase = phase;
          if (chance().with(odds(known.phase + "-phase", "restart", 0))) Host::current->restart();
          if (chance().with(odds(known.phase + "-phase", "death", 0))) die_within(20);
        }
    return real_->event(id, attempt, seq, type, json);
  }
  bool finish(const std::string& id, int attempt, const store::Outcome& outcome) override {
    perhaps_late();
    give_up(id, attempt);
    perhaps_yield();
    const bool accepted = real_->finish(id, attempt, outcome);
    if (accepted && outcome.kind != store::Outcome::Kind::infra) {
      const Truth::Known& known = truth_.accepted[id];
      if (attempt != known.attempt)
        fail(id + ": the result of attempt " + std::to_string(attempt) + " was accepted after attempt " +
             std::to_string(known.attempt) + " was claimed");
      auto& finals = truth_.accepted[id].finals;
      finals.emplace_back(attempt, outcome.verdict);
      if (finals.size() > 1) fail(id + ": two results were accepted");
    }
    return accepted;
  }
  bool release(const std::string& id, int attempt) override {
    give_up(id, attempt);
    return real_->release(id, attempt);
  }
  std::vector<store::Lease> held() override { return real_->held(); }

 private:
  void perhaps_late() {
    if (strikes("lease", "stalls", 0)) sleep_ms(chance().magnitude(4 * lease_));
  }
  void give_up(const std::string& id, int attempt) {
    Truth::Known& known = truth_.accepted[id];
    if (attempt == known.attempt) known.held = false;
  }

  const std::unique_ptr<AttemptSource> real_;
  const std::int64_t lease_;
  Truth& truth_;
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, bool talk) : chance_(seed), seed_(seed), talk_(talk), folder_(common_folder + "/host") {
    Disk::current = &disk_;
    Host::current = &host_;
    disk_.copy_from(empty_disk);
    begin_at_ms(kBeginMs, kBeginWallMs);
    fs::remove_all(folder_);
    wanted_ = 1 + static_cast<int>(chance_.below(8));
    slots_.cpu_slots.assign(chance_.below(3), "0");
    slots_.gpus = slots_.cpu_slots.empty() || chance_.one_in(2);
    host_.work_folder = folder_ + "/work";
    host_.on_restart = [this] { truth_.strike_phases("restart"); };
    hurry_ = chance_.one_in(2);
    tight_ = chance_.one_in(2);
    clock_is_set_ = chance_.one_in(2);
  }

  Tally play() {
    const auto lives = chance_.below(4);
    for (std::uint64_t life = 0; life < lives; ++life) live(false);
    live(true);
    check_all();
    truth_.tally.submissions = truth_.accepted.size();
    truth_.tally.turns_hash = trace();
    return truth_.tally;
  }

 private:
  // ---- One life of the program.

  void live(bool last) {
    last_ = last;
    ++truth_.tally.starts;
    ++host_.life;
    for (auto& [id, known] : truth_.accepted) known.held = false;
    if (clock_is_set_ && chance_.one_in(2)) set_clock();
    for (auto old = chance_.below(4); old > 0; --old)  // of a catalogue that was
      host_.images[host_.add_image({"kbench/env:old-" + std::to_string(host_.made)}, kOurImage)].created_s = 0;
    Plan plan;
    plan.yields = std::vector{0.02, 0.1, 0.4}[chance_.below(3)];
    host_.faults = {};
    disk_.faults = 0;
    focus_nowhere();
    focused_ = false;
    // Half of the time order returns while the last life goes on, else with a new start.
    troubled_ = !last || chance_.one_in(2);
    if (troubled_) worry();
    if (!last) {
      if (!chance_.one_in(focused_ ? 2 : 4)) plan.dies_at_turn = static_cast<std::uint64_t>(some(20'000));
    }
    const auto first_descriptor = static_cast<unsigned>(::dup(0));
    ::close(static_cast<int>(first_descriptor));
    bool died = false;
    try {
      died = run(chance_, plan, [this] { program(); }) == End::died;
    } catch (const store::StoreFault& fault) {
      died = true;  // kbenchd ends at start when the store cannot be opened, and is started again
      if (last && !troubled_) throw Failed(std::string("in good order: ") + fault.what());
    }
    if (!died) return;
    truth_.strike_phases("death");
    ++truth_.tally.deaths;
    ::close_range(first_descriptor, ~0u, 0);  // what a process loses by dying: descriptors and their locks
    disk_.forget_program();
    if (last) live(true);
  }

  // Forth or back, by a second or by days.
  void set_clock() {
    const std::int64_t by = chance_.magnitude(kClockMs);
    set_clock_by(chance_.one_in(2) ? by : -by);
  }

  // Short half of the time, for what happens at a start.
  std::int64_t some(std::int64_t most) {
    return chance_.one_in(2) ? chance_.magnitude(most)
                             : 1 + static_cast<std::int64_t>(chance_.below(static_cast<std::uint64_t>(most)));
  }

  void worry() {
    // Mostly few things at a time: where everything goes wrong nothing gets far.
    focused_ = !chance_.one_in(4);
    if (focused_) focus_on(4 * seed_ + life_++, chance_.one_in(2) ? 0.3 : 0.9);
    if (focused_ && chance_.one_in(2)) focus_on(chance_.bits(), 0.5);
    const std::uint64_t seldom = focused_ ? 16 : std::vector{3, 8}[chance_.below(2)];
    const auto perhaps = [&](double most) {
      return chance_.one_in(seldom) ? most * static_cast<double>(chance_.below(100)) / 100 : 0;
    };
    host_.faults = {.lost = perhaps(0.5),
                    .refused = perhaps(0.2),
                    .full = perhaps(0.2),
                    .slow = perhaps(0.3),
                    .stuck = perhaps(0.6),
                    .hangs = perhaps(0.6),
                    .ill = perhaps(0.6),
                    .dies = perhaps(0.3),
                    .restarts = perhaps(0.03),
                    .pruned = perhaps(0.1),
                    .gpus = perhaps(0.2),
                    .absent = last_ ? 0 : 0.02,
                    .stalls = perhaps(0.2),
                    .folder = perhaps(0.05)};
    disk_.faults = perhaps(0.05);
  }

  // What daemon/serve.cpp does, without HTTP.
  void program() {
    store::Options store_options;
    store_options.readers = 2;
    store_options.retry_delay = milliseconds(1'000);
    store_options.retry_delay_max = milliseconds(8'000);
    if (tight_) store_options.wal_bytes_max = 128 << 10;
    const auto db = store::open_sqlite(store_path, store_options);
    queue::Options queue_options;
    queue_options.lease = milliseconds(hurry_ ? 4'000 : 30'000);
    queue::Queue queue(*db, queue_options);
    Watched source(queue.source(kGrader), queue_options.lease, truth_);
    grader::Grader grader(
        grader_options(), {}, slots_, attach(), *tasks, source, &inventory_, [this](const std::string& line) {
          if (talk_) std::fprintf(stderr, "%lld %s\n", static_cast<long long>(now_ms() - kBeginMs), line.c_str());
        });
    std::atomic<bool> stopping = false;
    std::vector<std::thread> clients;
    const auto count = 1 + chance_.below(2);
    for (std::uint64_t i = 0; i < count; ++i) clients.emplace_back([&] { client(*db, queue, stopping); });
    if (clock_is_set_) clients.emplace_back([&] { keep_setting_clock(stopping); });
    clients.emplace_back([&] { watch_slots(grader, stopping); });
    if (troubled_) sleep_ms(some(200'000) + (focused_ ? 60'000 : 0));
    if (last_) {
      troubled_ = false;
      host_.faults = {};
      disk_.faults = 0;
      focus_nowhere();
      wait_for_all(*db, grader);
    }
    stopping = true;
    for (std::thread& thread : clients) thread.join();
    queue.stop();
    grader.stop();
    if (grader.active() != 0) fail("the grader has stopped with attempts in progress");
    if (last_)
      for (const gpu::SlotView& slot : grader.slots())
        if (slot.state == gpu::SlotState::busy) fail("a slot is still held by " + slot.holder);
  }

  grader::Options grader_options() const {
    grader::Options options;
    options.name = options.owner = kGrader;
    options.work_folder = host_.work_folder;
    options.disk_free_bytes_min = 1;
    options.full_disk_pause = milliseconds(5'000);
    options.compile_deadline = milliseconds(20'000);
    options.measure_deadline = milliseconds(40'000);
    options.reference_deadline = milliseconds(40'000);
    options.container_slack = milliseconds(5'000);
    options.reconcile_every = milliseconds(tight_ ? 5'000 : 30'000);
    options.prune_every = milliseconds(tight_ ? 10'000 : 60'000);
    if (tight_) options.images_bytes_max = 1;
    options.compile_uid_first = static_cast<std::uint32_t>(::getuid());
    return options;
  }
  static gpu::AttachOptions attach() {
    gpu::AttachOptions options;
    options.mode = gpu::Mode::nvidia;
    return options;
  }

  // ---- The outside world.

  // Hands in until enough was accepted, looks, cancels now and then. In quiet times it only repeats what got no answer.
  void client(store::Store& db, queue::Queue& queue, const std::atomic<bool>& stopping) {
    while (!stopping) {
      sleep_ms(chance_.magnitude(troubled_ ? 20'000 : 2'000));
      try {
        submit_one(queue);
        if (truth_.accepted.empty()) continue;
        auto any = truth_.accepted.begin();
        std::advance(any, static_cast<long>(chance_.below(truth_.accepted.size())));
        const std::string id = any->first;
        if (troubled_ && chance_.one_in(6)) {
          truth_.accepted[id].cancel_asked = true;
          db.cancel(id);
        }
        look(db, id);
      } catch (const store::StoreFault&) {  // 503
      }
    }
  }

  // A slot is nobody's only when what this life of the program had started there has ended.
  void watch_slots(const grader::Grader& grader, const std::atomic<bool>& stopping) {
    while (!stopping) {
      sleep_ms(500);
      if (troubled_ && strikes("program", "stalls", host_.faults.stalls / 2)) stall_ms(chance_.magnitude(60'000));
      const auto slots = grader.slots();
      for (const auto& [id, box] : host_.boxes)
        for (const gpu::SlotView& view : slots)
          if (box.facts.running() && box.life == host_.life && view.state == gpu::SlotState::ready &&
              grader::is_on(box.facts, view.slot))
            fail(box.facts.name + " runs on a slot that is free");
    }
  }

  // Also in quiet times: no clock is an excuse.
  void keep_setting_clock(const std::atomic<bool>& stopping) {
    while (!stopping) {
      sleep_ms(chance_.magnitude(60'000));
      set_clock();
    }
  }

  void submit_one(queue::Queue& queue) {
    const auto known = static_cast<int>(truth_.ids.size());
    const bool again = known > 0 && (known >= wanted_ || chance_.one_in(4));
    if (again && !chance_.one_in(3)) return;
    const int number = again ? static_cast<int>(chance_.below(static_cast<std::uint64_t>(known))) : known;
    store::NewSubmission made{};
    made.idempotency_key = "key-" + std::to_string(number);
    made.task = kTask;
    made.submitter = "submitter-" + std::to_string(number % 3);
    made.body_hash = made.source_hash = "hash-" + std::to_string(number);
    made.priority = number % 2;
    made.device = slots_.gpus && (slots_.cpu_slots.empty() || number % 2 == 0) ? "cuda" : "cpu";
    made.gpus = made.device == "cuda" ? 1 + number % 2 : 0;
    made.language = "cpp";
    made.files = {{"solution.cpp", "int x;"}, {"more/more.h", "int y;"}};
    const queue::Admission admission = queue.submit(made);
    if (admission.how != queue::Admitted::created && admission.how != queue::Admitted::replayed) return;
    const std::string& id = admission.submission.id;
    const auto [entry, first] = truth_.ids.emplace(made.idempotency_key, id);
    if (!first && entry->second != id)
      fail(made.idempotency_key + " was accepted twice: " + entry->second + " and " + id);
    truth_.accepted[id].key = made.idempotency_key;
  }

  void look(store::Store& db, const std::string& id) {
    const Truth::Known before = truth_.accepted[id];  // others look, too
    const auto now = db.get(id);
    if (!now) fail(id + " was accepted and is lost");
    if (now->attempt < before.attempt) fail(id + ": its attempts went back");
    if (!is_final(now->state)) {
      if (before.ended) fail(id + " had ended and goes on");
      return;
    }
    truth_.accepted[id].ended = now;
    const store::Submission& then = before.ended ? *before.ended : *now;
    if (then.state != now->state || then.verdict != now->verdict || then.reward != now->reward ||
        then.finished != now->finished || then.attempt != now->attempt)
      fail(id + ": its end has changed");
  }

  void wait_for_all(store::Store& db, grader::Grader& grader) {
    const std::int64_t until = now_ms() + kQuietMs;
    while (now_ms() < until) {
      sleep_ms(5'000);
      for (const gpu::SlotView& slot : grader.slots())  // the operator's part
        if (slot.state == gpu::SlotState::quarantined && host_.boxes.empty())
          grader.release_quarantine(slot.slot.index);
      bool all = static_cast<int>(truth_.ids.size()) >= wanted_;
      const auto accepted = truth_.accepted;
      for (const auto& [id, known] : accepted) {
        look(db, id);
        all = all && truth_.accepted[id].ended;
      }
      if (all && left_over().empty() && !host_.owes()) return;
    }
    std::string left = left_over();
    for (const auto& [id, known] : truth_.accepted)
      if (const auto now = db.get(id); !known.ended) left += " " + id + " (" + name_of(now->state) + ")";
    fail("not ended after six quiet hours:" + left);
  }

  std::string left_over() const {
    std::string left;
    for (const auto& [id, box] : host_.boxes) left += " container " + box.facts.name;
    for (const auto& [id, image] : host_.images)
      if (image.tags.empty() && !image.labels.empty()) left += " image " + id;
    for (const auto& entry : fs::directory_iterator(host_.work_folder))
      if (entry.is_directory()) left += " " + entry.path().string();
    return left;
  }

  // ---- At the end.

  void check_all() {
    if (const std::string left = left_over(); !left.empty()) throw Failed("left over:" + left);
    store::Connection db("dbname=\"" + store_path + "\"");
    if (const std::string broken = store::test::broken_invariant(db); !broken.empty()) throw Failed(broken);
    std::int64_t stored = 0;
    db.one("select count(*) from submissions", std::tie(stored));
    if (stored != static_cast<std::int64_t>(truth_.ids.size())) throw Failed(std::to_string(stored) + " are stored");
    for (const auto& [id, known] : truth_.accepted) check_end(id, known);
  }

  void check_end(const std::string& id, const Truth::Known& known) {
    const store::Submission& end = known.ended.value();
    if (end.state == State::cancelled && !known.cancel_asked) throw Failed(id + " was cancelled by nobody");
    if (end.state == State::failed && end.verdict != "infra_error") throw Failed(id + " failed without a cause");
    for (const auto& [attempt, verdict] : known.finals)
      if (attempt != end.attempt || verdict != end.verdict) throw Failed(id + ": another result than the accepted one");
    if (end.verdict != "correct") {
      if (end.state == State::done && !host_.bad_verdicts[{id, end.attempt}].contains(end.verdict))
        throw Failed(id + ": the verdict " + end.verdict + " is of nothing that attempt " +
                     std::to_string(end.attempt) + " did");
      return;
    }
    const auto reward = host_.rewards.find({id, end.attempt});
    if (reward == host_.rewards.end() || reward->second != end.reward)
      throw Failed(id + ": its reward is not what attempt " + std::to_string(end.attempt) + " measured");
  }

  Chance chance_;
  const std::uint64_t seed_;
  const bool talk_;
  const std::string folder_;
  Disk disk_;
  Host host_;
  Inventory inventory_;
  gpu::SlotOptions slots_;
  Truth truth_;
  int wanted_ = 0;
  std::uint64_t life_ = 0;
  bool hurry_ = false, tight_ = false, clock_is_set_ = false, last_ = false, troubled_ = false, focused_ = false;
};

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

void prepare(const std::string& folder) {
  spdlog::set_level(spdlog::level::off);
  common_folder = folder;
  store_path = folder + "/kbench.db";
  const std::string task = folder + "/tasks/" + kTask;
  fs::create_directories(task + "/tests");
  fs::copy_file("tasks/" + std::string(kTask) + "/tests/task.json", task + "/tests/task.json");
  write(task + "/tests/Dockerfile", "FROM scratch\n");
  write(task + "/environment/Dockerfile", "FROM scratch\n");
  tasks = std::make_unique<grader::Tasks>(folder + "/tasks");
  grader::sha256_hex("");  // OpenSSL makes itself ready once a process
  Disk::install();
  Disk::current = &empty_disk;
  Chance chance(0);
  run(chance, {}, [] { store::open_sqlite(store_path); });
  empty_disk.forget_program();
}

Tally play(std::uint64_t seed, bool talk) { return Schedule(seed, talk).play(); }

}  // namespace kbench::sim
