// GET /metrics in the text format of Prometheus. Read from the store at each scrape: nothing is counted twice, nothing
// is lost by a restart.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>

#include "daemon/api/context.h"

namespace kbench::api {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

class Page {
 public:
  Page& family(const std::string& name, const std::string& help, MetricType type) {
    families_.push_back({name, help, type, {}});
    return *this;
  }
  Page& value(double value, const Labels& labels = {}) {
    ClientMetric metric;
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
    if (families_.back().type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(metric));
    return *this;
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

std::string scrape(Context& context) {
  Page page;
  const auto counts = context.store.counts();
  page.family("kbench_info", "Version of the daemon.", MetricType::Gauge)
      .value(1, {{"version", context.given.version}});
  page.family("kbench_submissions", "Submissions in the store, by state.", MetricType::Gauge);
  for (const auto& [state, number] : counts.by_state) page.value(static_cast<double>(number), {{"state", state}});
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto waiting_ms = counts.oldest_queued == 0 ? 0 : std::max<std::int64_t>(0, now - counts.oldest_queued);
  page.family("kbench_oldest_queued_seconds", "Age of the oldest waiting submission.", MetricType::Gauge)
      .value(static_cast<double>(waiting_ms) / 1000);
  page.family("kbench_slots", "GPUs and cpu sets, by state.", MetricType::Gauge);
  std::map<std::tuple<std::string, std::string, std::string>, int> slots;
  for (const auto& slot : context.given.slots()) ++slots[{slot.device, slot.model, slot.state}];
  for (const auto& [key, number] : slots) {
    page.value(number, {{"device", std::get<0>(key)}, {"model", std::get<1>(key)}, {"state", std::get<2>(key)}});
  }
  page.family("kbench_submit_requests_total", "Submissions asked for since the start, by what became of them.",
              MetricType::Counter);
  const auto add = [&](const char* result, const std::atomic<std::uint64_t>& number) {
    page.value(static_cast<double>(number.load()), {{"result", result}});
  };
  add("created", context.submits.created);
  add("replayed", context.submits.replayed);
  add("refused", context.submits.refused);
  add("queue_full", context.submits.queue_full);
  return page.text();
}

}  // namespace

void mount_metrics(http::Server& server, const ContextPtr& context) {
  server.route("GET", "/metrics", http::Access::token, [context](const http::Request&) {
    http::Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    try {
      response.body = scrape(*context);
    } catch (const store::StoreFault& fault) {
      throw http::Problem{
          503, "store-fault", "the store cannot be used", fault.what(), "", context->limits.retry_after_s};
    }
    return response;
  });
}

}  // namespace kbench::api
