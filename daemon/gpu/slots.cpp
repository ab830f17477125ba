#include <algorithm>
#include <set>

#include "daemon/gpu/gpu.h"

namespace kbench::gpu {

const char* name_of(SlotState state) {
  switch (state) {
    case SlotState::ready:
      return "ready";
    case SlotState::busy:
      return "busy";
    case SlotState::quarantined:
      return "quarantined";
  }
  return "?";
}

std::vector<Slot> make_slots(const SlotOptions& options, const std::vector<Gpu>& gpus) {
  std::vector<Slot> slots;
  const auto add = [&](const std::string& device, const std::string& cpuset, std::optional<Gpu> gpu) {
    const auto index = static_cast<int>(slots.size());
    const auto uids = static_cast<std::uint32_t>(index) * options.uids_per_slot;
    slots.push_back({index, device, cpuset, options.uid_first + uids, std::move(gpu)});
  };
  for (const std::string& cpuset : options.cpu_slots) add("cpu", cpuset, std::nullopt);
  if (!options.gpus) return slots;
  for (const Gpu& gpu : gpus) {
    if (std::find(options.gpus_excluded.begin(), options.gpus_excluded.end(), gpu.uuid) != options.gpus_excluded.end())
      continue;
    const auto cpuset = options.gpu_cpusets.find(gpu.uuid);
    add("cuda", cpuset == options.gpu_cpusets.end() ? "" : cpuset->second, gpu);
  }
  return slots;
}

Slots::Held::Held(Held&& other) noexcept : owner_(other.owner_), slots_(std::move(other.slots_)) {
  other.owner_ = nullptr;
}

Slots::Held::~Held() {
  if (owner_) owner_->give_back(slots_);
}

std::vector<Gpu> Slots::Held::gpus() const {
  std::vector<Gpu> gpus;
  for (const Slot& slot : slots_)
    if (slot.gpu) gpus.push_back(*slot.gpu);
  return gpus;
}

std::string Slots::Held::cpuset() const {
  std::string all;
  for (const Slot& slot : slots_) {
    if (slot.cpuset.empty()) return {};  // one of them may use every CPU
    all += (all.empty() ? "" : ",") + slot.cpuset;
  }
  return all;
}

Slots::Slots(std::vector<Slot> slots, int gpu_faults_max) : gpu_faults_max_(gpu_faults_max) {
  for (Slot& slot : slots) {
    Entry entry;
    entry.slot = std::move(slot);
    entries_.push_back(std::move(entry));
  }
}

std::vector<Slots::Entry*> Slots::matching(const Waiter& waiter) {
  std::vector<Entry*> found;
  for (Entry& entry : entries_) {
    if (entry.slot.device != waiter.device || entry.state == SlotState::quarantined) continue;
    if (!waiter.model.empty() && (!entry.slot.gpu || entry.slot.gpu->model != waiter.model)) continue;
    found.push_back(&entry);
  }
  return found;
}

// Free slots that match, without those set aside for whoever came before. Else one that wants several at once would
// wait for as long as there are others that want one.
std::vector<Slots::Entry*> Slots::free_for(const Waiter& waiter) {
  std::set<Entry*> set_aside;
  for (const Waiter* other : waiters_) {
    std::vector<Entry*> free = matching(*other);
    const bool possible = free.size() >= other->wanted;
    std::erase_if(free, [&](Entry* entry) { return entry->state != SlotState::ready || set_aside.contains(entry); });
    if (other == &waiter) return free;
    if (!possible) continue;  // it is about to be told so
    free.resize(std::min(free.size(), other->wanted));
    set_aside.insert(free.begin(), free.end());
  }
  return {};
}

std::optional<Slots::Held> Slots::acquire(const std::string& device, int count, const std::string& model,
                                          const std::string& holder, const std::stop_token& stop,
                                          const std::string& submitter) {
  std::unique_lock lock(mutex_);
  Turns& turns = turns_[device];
  std::int64_t& next = turns.next.try_emplace(submitter, turns.now).first->second;
  const Waiter waiter{device, model, static_cast<std::size_t>(std::max(count, 1)), next++};
  const auto behind = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter* other) {
    return other->device == device && other->turn > waiter.turn;
  });
  const std::shared_ptr<void> place(nullptr, [this, at = waiters_.insert(behind, &waiter)](void*) {
    waiters_.erase(at);
    changed_.notify_all();  // what was set aside for this one may fit another
  });
  std::vector<Entry*> free;
  bool possible = true;
  const bool decided = changed_.wait(lock, stop, [&] {
    possible = matching(waiter).size() >= waiter.wanted;
    free = free_for(waiter);
    return !possible || free.size() >= waiter.wanted;
  });
  if (!decided) return std::nullopt;
  if (!possible)
    throw NoSlot("no " + device + " slot is left" + (model.empty() ? "" : " of model " + model) + " (wanted " +
                 std::to_string(waiter.wanted) + ")");
  turns.now = std::max(turns.now, waiter.turn);
  std::erase_if(turns.next, [&](const auto& each) { return each.second <= turns.now; });
  std::vector<Slot> taken;
  for (std::size_t i = 0; i < waiter.wanted; ++i) {
    free[i]->state = SlotState::busy;
    free[i]->holder = holder;
    taken.push_back(free[i]->slot);
  }
  return Held(this, std::move(taken));
}

void Slots::give_back(const std::vector<Slot>& slots) {
  {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : slots) {
      Entry& entry = entries_[static_cast<std::size_t>(slot.index)];
      entry.holder.clear();
      if (entry.state == SlotState::busy) entry.state = SlotState::ready;
    }
  }
  changed_.notify_all();
}

int Slots::usable(const std::string& device) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.slot.device == device && entry.state != SlotState::quarantined;
  }));
}

std::vector<std::string> Slots::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> models;
  for (const Entry& entry : entries_)
    if (entry.slot.gpu && entry.state != SlotState::quarantined &&
        std::find(models.begin(), models.end(), entry.slot.gpu->model) == models.end())
      models.push_back(entry.slot.gpu->model);
  return models;
}

Slots::Kind Slots::commonest() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> counts;
  for (const Entry& entry : entries_)
    if (entry.slot.gpu && entry.state != SlotState::quarantined) ++counts[entry.slot.gpu->model];
  Kind most;
  for (const auto& [model, count] : counts)
    if (count > most.count) most = {model, count};
  return most;
}

void Slots::quarantine(int index, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(static_cast<std::size_t>(index));
    if (entry.state == SlotState::quarantined) return;  // the first reason is the one to look into
    entry.state = SlotState::quarantined;
    entry.reason = reason;
  }
  changed_.notify_all();
}

void Slots::quarantine_gpu(const std::string& uuid, const std::string& reason) {
  std::optional<int> index;
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.slot.gpu && entry.slot.gpu->uuid == uuid) index = entry.slot.index;
  }
  if (index) quarantine(*index, reason);
}

void Slots::release_quarantine(int index) {
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_.at(static_cast<std::size_t>(index));
    if (entry.state != SlotState::quarantined) return;
    entry.state = entry.holder.empty() ? SlotState::ready : SlotState::busy;
    entry.reason.clear();
    entry.faults = 0;
  }
  changed_.notify_all();
}

void Slots::judge(const Held& held, bool gpu_fault, const std::string& reason) {
  std::vector<int> spent;
  {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : held.slots()) {
      Entry& entry = entries_[static_cast<std::size_t>(slot.index)];
      entry.faults = gpu_fault ? entry.faults + 1 : 0;
      if (slot.gpu && entry.faults >= gpu_faults_max_) spent.push_back(slot.index);
    }
  }
  for (const int index : spent) quarantine(index, reason);
}

std::vector<SlotView> Slots::view() const {
  const std::lock_guard lock(mutex_);
  std::vector<SlotView> views;
  views.reserve(entries_.size());
  for (const Entry& entry : entries_) views.push_back({entry.slot, entry.state, entry.reason, entry.holder});
  return views;
}

}  // namespace kbench::gpu
