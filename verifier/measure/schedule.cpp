#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>

#include "verifier/measure/measure.h"

namespace kbench::measure {
namespace {

template <class T>
void shuffle(std::vector<T>& values, Secrets& secrets) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[secrets.below(i)]);
}

}  // namespace

std::uint64_t Secrets::next() {
  std::uint64_t value = 0;
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return value;
}

std::uint64_t Secrets::below(std::uint64_t bound) {
  const std::uint64_t reject_from =
      UINT64_MAX - UINT64_MAX % bound;  // whole multiples of the bound only: no modulo bias
  for (;;) {
    const std::uint64_t value = next();
    if (value < reject_from) return value % bound;
  }
}

Keys draw_keys(Secrets& secrets) {
  Keys keys;
  keys.seed = secrets.next();
  keys.poison = secrets.next();
  keys.order = secrets.next();
  return keys;
}

RunPlan draw_run(Secrets& secrets, int shapes, const std::vector<int>& compared) {
  RunPlan plan;
  std::vector<int> order;
  std::vector<std::vector<bool>> chosen;
  for (int shape = 0; shape < shapes; ++shape) {
    plan.prepare.push_back(draw_keys(secrets));
    order.insert(order.end(), kRepetitions, shape);
    // Unscored calls come behind the scored ones: nothing is gained by being wrong in them.
    std::vector<std::size_t> scored(kScored), turns(kUnscored);
    std::iota(scored.begin(), scored.end(), std::size_t{kUnscored});
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    shuffle(scored, secrets);
    shuffle(turns, secrets);
    turns.insert(turns.begin(), scored.begin(), scored.end());
    turns.resize(static_cast<std::size_t>(std::clamp(compared[static_cast<std::size_t>(shape)], 0, kRepetitions)));
    std::vector<bool> draw(kRepetitions, false);
    for (const std::size_t turn : turns) draw[turn] = true;
    chosen.push_back(std::move(draw));
  }
  shuffle(order, secrets);
  std::vector<int> seen(static_cast<std::size_t>(shapes), 0);
  for (const int shape : order) {
    const auto s = static_cast<std::size_t>(shape);
    const int nth = seen[s]++;
    plan.repetitions.push_back({shape, nth >= kUnscored, chosen[s][static_cast<std::size_t>(nth)], draw_keys(secrets)});
  }
  return plan;
}

std::vector<int> compared_per_run(const std::vector<double>& check_seconds,
                                  const std::vector<std::uint64_t>& snapshot_bytes, std::uint64_t bytes_free) {
  const double one_of_each = std::accumulate(check_seconds.begin(), check_seconds.end(), 0.0);
  const std::uint64_t set_bytes = std::accumulate(snapshot_bytes.begin(), snapshot_bytes.end(), std::uint64_t{0});
  int count = kRepetitions;
  while (count > kComparedMin && !(one_of_each * kWorkerRuns * count <= kCheckBudgetSeconds)) --count;
  while (count > kComparedLeast && set_bytes * static_cast<std::uint64_t>(count) > bytes_free) --count;
  if (set_bytes * static_cast<std::uint64_t>(count) > bytes_free) {
    throw NotCredible("no memory for " + std::to_string(count) + " snapshots of each shape: " +
                      std::to_string(set_bytes) + " bytes a set, " + std::to_string(bytes_free) + " free");
  }
  return std::vector<int>(check_seconds.size(), count);
}

std::optional<Shape> draw_odd(Secrets& secrets, const Problem& problem, int index) {
  if (problem.odd.empty() || problem.test.empty()) return std::nullopt;
  for (int attempt = 0; attempt < kOddDraws; ++attempt) {
    Shape shape;
    shape.name = "odd" + std::to_string(index + 1);
    for (const std::string& dim : problem.dims) shape.dims[dim] = problem.test.front().dims.at(dim);
    for (const auto& [dim, range] : problem.odd) {
      const auto span = static_cast<std::uint64_t>(range.second) - static_cast<std::uint64_t>(range.first) + 1;
      shape.dims[dim] = range.first + static_cast<std::int64_t>(secrets.below(span));
    }
    try {
      shape = problem.with_derived(std::move(shape));
      for (const Tensor& tensor : problem.tensors) {
        if (problem.elements(tensor, shape.dims) <= 0) throw BadExpression("an empty tensor");
      }
      return shape;
    } catch (const BadExpression&) {  // an inexact division: other dims may do
    }
  }
  return std::nullopt;
}

}  // namespace kbench::measure
