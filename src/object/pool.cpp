#include "object/pool.hpp"

#include <algorithm>
#include <cstring>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "pmem/flush.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

// Adds the time until the end of the scope to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(std::uint64_t& total_ns) : total_ns_(total_ns), start_ns_(monotonic_ns()) {}
  ~Stopwatch() { total_ns_ += monotonic_ns() - start_ns_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::uint64_t& total_ns_;
  std::uint64_t start_ns_;
};

template <typename T>
Status status_of(const Result<T>& result) {
  return result.ok() ? Status::success() : result.status();
}

}  // namespace

Status format_slots(Device& device, const Region& region) {
  Slots slots(device, region);
  Catalogue empty;
  empty.allocated_end = region.data_offset;
  PERDURE_TRY(slots.store_body(empty));
  slots.store_state({SlotState::open, 1});
  PERDURE_TRY(device.fence());
  slots.store_state({SlotState::complete, 0});
  return device.fence();
}

Pool::Pool(std::unique_ptr<Device> device, const Region& region, Group& group,
           const PoolOptions& options)
    : device_(std::move(device)),
      region_(region),
      group_(group),
      options_(options),
      writer_(*device_, options.copy_threads),
      slots_(*device_, region),
      run_page_(group.rank(), group.ranks()) {}

Pool::~Pool() = default;

Result<std::unique_ptr<Pool>> Pool::attach(std::unique_ptr<Device> device, const Region& region,
                                           Group& group, const PoolOptions& options) {
  std::unique_ptr<Pool> pool(new Pool(std::move(device), region, group, options));
  auto chosen = choose_version(group, pool->slots_, options.allow_older);
  if (!chosen.ok()) return chosen.status();
  pool->recovered_ = chosen.take();
  pool->next_ = pool->recovered_.catalogue;
  pool->next_.version += 1;
  pool->next_.incarnation += 1;
  pool->status_.version = pool->recovered_.catalogue.version;
  pool->status_.fell_back = pool->recovered_.fell_back;
  pool->status_.survives_power_failure =
      pool->device_->describe().persistence == PersistenceClass::power_failure;
  return pool;
}

Status Pool::check_usable() const {
  if (!broken_.ok()) {
    return {Code::wrong_state,
            "the pool failed earlier and must be reopened: " + broken_.message()};
  }
  return Status::success();
}

Status Pool::check_committable() const {
  PERDURE_TRY(check_usable());
  if (!restarted_) {
    return {Code::wrong_state,
            "perdure_restart() must be called before the first commit, so that a version of an "
            "earlier run is never overwritten by mistake"};
  }
  if (next_.version > version_max) return {Code::no_space, "no version numbers are left"};
  return Status::success();
}

// Where a new array's halves and tables go: behind everything that the next version names.
Result<ArrayEntry> Pool::plan_array(const std::string& name, const ArrayShape& shape) {
  PERDURE_TRY(check_name(name));
  auto bytes = checked_bytes(shape);
  if (!bytes.ok()) return bytes.status();
  ArrayEntry entry;
  entry.name = name;
  entry.shape = shape;
  entry.size_bytes = bytes.value();
  // Large halves begin on huge pages, so that the kernel can map them by such.
  const std::uint64_t align =
      entry.size_bytes >= huge_page_bytes
          ? std::max<std::uint64_t>(region_.geometry.align_bytes, huge_page_bytes)
          : region_.geometry.align_bytes;
  const std::uint64_t table_bytes =
      shape.checksums ? 8 * block_count(entry.size_bytes, region_.geometry.block_bytes) : 0;
  std::uint64_t end = next_.allocated_end;
  for (std::size_t half = 0; half < 2; ++half) {
    entry.half_offset[half] = align_up(end, align);
    end = entry.half_offset[half] + entry.size_bytes;
    if (table_bytes == 0) continue;
    entry.table_offset[half] = align_up(end, std::min<std::uint64_t>(align, cache_line_bytes));
    end = entry.table_offset[half] + table_bytes;
  }
  next_.allocated_end = align_up(end, align);
  return entry;
}

Result<VersionedArray*> Pool::add_array(const ArrayEntry& entry, const ArrayOptions& options) {
  auto array =
      VersionedArray::create(*device_, writer_, entry, region_.geometry.block_bytes, options);
  if (!array.ok()) return array.status();
  arrays_.push_back(array.take());
  array_list_.push_back(arrays_.back().get());
  return arrays_.back().get();
}

Result<VersionedArray*> Pool::open_array(const std::string& name, const ArrayShape& shape,
                                         const ArrayOptions& options) {
  const std::uint64_t allocated_before = next_.allocated_end;
  const std::size_t entries_before = next_.arrays.size();
  const std::size_t arrays_before = arrays_.size();
  const Status local = [&]() -> Status {
    PERDURE_TRY(check_usable());
    for (const auto& array : arrays_) {
      if (array->name() == name) return {Code::invalid_argument, "array '" + name + "' is open"};
    }
    const ArrayEntry* known = next_.find_array(name);
    if (known != nullptr && !(known->shape == shape)) {
      return {Code::shape_mismatch,
              "array '" + name + "' is " + known->shape.text() + " in the pool, not " +
                  shape.text() + "; open it as it is, or open the pool with PERDURE_DISCARD"};
    }
    if (known == nullptr) {
      auto planned = plan_array(name, shape);
      if (!planned.ok()) return planned.status();
      next_.arrays.push_back(planned.take());
      if (body_bytes(next_) > slots_.body_bytes_max()) {
        return {Code::no_space, "the pool's slots have no room for array '" + name + "'"};
      }
      PERDURE_TRY(device_->resize(std::max(device_->size_bytes(), next_.allocated_end)));
      known = &next_.arrays.back();
    }
    array_entry_.push_back(static_cast<std::size_t>(known - next_.arrays.data()));
    PERDURE_TRY(status_of(add_array(*known, options)));
    return restarted_ ? load_array(arrays_.size() - 1) : Status::success();
  }();
  const Status all = agree(group_, local);
  if (all.ok()) return arrays_.back().get();
  // Nothing half made: the file may have grown, which the next array will use.
  next_.allocated_end = allocated_before;
  next_.arrays.resize(entries_before);
  arrays_.resize(arrays_before);
  array_list_.resize(arrays_before);
  array_entry_.resize(arrays_before);
  return all;
}

Status Pool::bind_scalar(const std::string& name, void* address, std::size_t bytes) {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_name(name));
  if (address == nullptr || bytes == 0 || bytes > scalar_bytes_max) {
    return {Code::invalid_argument, "scalar '" + name + "' needs an address and 1 to " +
                                        std::to_string(scalar_bytes_max) + " bytes, not " +
                                        std::to_string(bytes)};
  }
  auto& entries = next_.scalars;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&name](const ScalarEntry& e) { return e.name == name; });
  const auto index = static_cast<std::size_t>(found - entries.begin());
  if (found == entries.end()) {
    entries.push_back({name, std::vector<std::byte>(bytes)});
    if (body_bytes(next_) > slots_.body_bytes_max()) {
      entries.pop_back();
      return {Code::no_space, "the pool's slots have no room for scalar '" + name + "'"};
    }
  } else {
    const bool bound = std::any_of(scalars_.begin(), scalars_.end(),
                                   [index](const BoundScalar& s) { return s.entry == index; });
    if (bound) return {Code::invalid_argument, "scalar '" + name + "' is already bound"};
    if (found->bytes.size() != bytes) {
      return {Code::shape_mismatch, "scalar '" + name + "' has " +
                                        std::to_string(found->bytes.size()) +
                                        " bytes in the pool, not " + std::to_string(bytes)};
    }
    if (restarted_) std::memcpy(address, found->bytes.data(), bytes);
  }
  scalars_.push_back({address, index});
  return Status::success();
}

Status Pool::load_array(std::size_t index) {
  const ArrayEntry& entry = next_.arrays[array_entry_[index]];
  const bool known = recovered_.catalogue.find_array(entry.name) != nullptr;
  return known ? arrays_[index]->start_restored(entry) : arrays_[index]->start_empty();
}

Status Pool::load_all() {
  if (recovered_.weak) {
    for (const ArrayEntry& entry : recovered_.catalogue.arrays) {
      PERDURE_TRY(verify_and_copy(*device_, entry, region_.geometry.block_bytes, nullptr, nullptr));
    }
  }
  for (std::size_t i = 0; i < arrays_.size(); ++i) PERDURE_TRY(load_array(i));
  return Status::success();
}

Result<std::uint64_t> Pool::restart() {
  std::uint64_t restart_ns = 0;
  {
    const Stopwatch watch(restart_ns);
    run_page_.set_phase(RunPhase::restarting);
    Status local = check_usable();
    if (local.ok() && restarted_) {
      local = Status(Code::wrong_state, "perdure_restart() was called before");
    }
    if (local.ok()) local = load_all();
    PERDURE_TRY(agree(group_, local));
    broken_ = settle_version(*device_, slots_, group_, recovered_);
    PERDURE_TRY(broken_);
  }
  for (const BoundScalar& scalar : scalars_) {
    const ScalarEntry& entry = next_.scalars[scalar.entry];
    if (recovered_.catalogue.find_scalar(entry.name) == nullptr) continue;
    std::memcpy(scalar.address, entry.bytes.data(), entry.bytes.size());
  }
  restarted_ = true;
  successor_open_ = true;
  status_.restart_ns = restart_ns;
  run_page_.set_restored(status_.version, iteration(), restart_ns);
  run_page_.set_phase(RunPhase::computing);
  return status_.version;
}

std::uint64_t Pool::iteration() const {
  for (const BoundScalar& scalar : scalars_) {
    const ScalarEntry& entry = next_.scalars[scalar.entry];
    if (entry.name != "iteration") continue;
    std::uint64_t value = 0;  // little-endian: 4 bytes widen by themselves
    if (entry.bytes.size() > sizeof value) break;
    std::memcpy(&value, entry.bytes.data(), entry.bytes.size());
    return value;
  }
  return no_iteration;
}

void Pool::save_scalars() {
  for (const BoundScalar& scalar : scalars_) {
    std::vector<std::byte>& bytes = next_.scalars[scalar.entry].bytes;
    std::memcpy(bytes.data(), scalar.address, bytes.size());
  }
}

// What both forms of commit do first: local, and before any store to a working half.
Status Pool::prepare_version() {
  run_page_.set_phase(RunPhase::committing);
  if (!successor_open_) {
    PERDURE_TRY(open_slot(*device_, slots_, next_.version));
    successor_open_ = true;
  }
  save_scalars();
  for (const auto& array : arrays_) PERDURE_TRY(array->collect_changes());
  return Status::success();
}

Status Pool::save_arrays(std::uint64_t& bytes) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (i == arrays_.size() / 2) run_page_.rehearse(KillPoint::copy, next_.version, iteration());
    auto saved = arrays_[i]->save();
    if (!saved.ok()) return saved.status();
    bytes += saved.value();
  }
  return Status::success();
}

// A rank that cannot take part still keeps step with the two agreements of a commit that fails
// (commit.cpp, 4 and I6), so that no other rank waits for it.
Status Pool::refuse_commit(const Status& state) {
  const Status all = agree(group_, state);
  if (Status closed = agree(group_, Status::success()); !closed.ok()) return closed;
  return all;
}

Result<std::uint64_t> Pool::commit() {
  if (pending_) PERDURE_TRY(status_of(commit_wait()));
  if (Status state = check_committable(); !state.ok()) return refuse_commit(state);
  std::uint64_t bytes = 0;
  blocked_ns_ = 0;
  const std::uint64_t start_ns = monotonic_ns();
  Status data = prepare_version();
  if (data.ok()) data = save_arrays(bytes);
  blocked_ns_ = monotonic_ns() - start_ns;
  return finish_commit(data, bytes);
}

Status Pool::commit_begin() {
  if (pending_) PERDURE_TRY(status_of(commit_wait()));
  PERDURE_TRY(check_committable());
  blocked_ns_ = 0;
  const Stopwatch watch(blocked_ns_);
  pending_ = true;  // also after a failure: commit_wait() tells the other ranks
  begun_ = prepare_version();
  PERDURE_TRY(begun_);
  if (!saver_) saver_ = std::make_unique<BackgroundSaver>(*device_);
  saver_->start(array_list_);
  run_page_.set_phase(RunPhase::computing);
  return Status::success();
}

Status Pool::before_write(const VersionedArray& array) {
  if (!pending_ || !begun_.ok()) return check_usable();
  const Stopwatch watch(blocked_ns_);
  saver_->wait_for(array);
  return Status::success();
}

Result<std::uint64_t> Pool::commit_wait() {
  if (!pending_) {
    return refuse_commit(
        {Code::wrong_state, "perdure_commit_wait() without perdure_commit_begin()"});
  }
  pending_ = false;
  run_page_.set_phase(RunPhase::committing);
  std::uint64_t bytes = 0;
  Status data = begun_;
  if (data.ok()) {
    const Stopwatch watch(blocked_ns_);
    data = saver_->wait_all(bytes);
  }
  run_page_.rehearse(KillPoint::copy, next_.version, iteration());
  return finish_commit(data, bytes);
}

Result<std::uint64_t> Pool::finish_commit(const Status& data, std::uint64_t bytes) {
  const std::uint64_t start_ns = monotonic_ns();
  if (data.ok()) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      arrays_[i]->update_entry(next_.arrays[array_entry_[i]]);
    }
    next_.committed_ns = wall_clock_ns();
  }
  const CommitParties parties{*device_, slots_, group_, run_page_, iteration()};
  const CommitResult result = commit_version(parties, next_, data);
  run_page_.set_phase(RunPhase::computing);
  if (result.outcome == CommitOutcome::unknown) broken_ = result.status;
  if (result.outcome != CommitOutcome::committed) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      next_.arrays[array_entry_[i]] = arrays_[i]->entry();
    }
    return result.status;
  }
  successor_open_ = result.status.ok();
  for (const auto& array : arrays_) array->commit();
  blocked_ns_ += monotonic_ns() - start_ns;
  status_.version = next_.version++;
  status_.commits += 1;
  status_.commit_ns_last = blocked_ns_;
  status_.commit_ns += blocked_ns_;
  status_.committed_bytes += bytes;
  run_page_.set_committed(
      {status_.version, iteration(), blocked_ns_, bytes, device_->counters().model_ns});
  return status_.version;
}

PoolStatus Pool::status() const {
  PoolStatus status = status_;
  status.model_ns = device_->counters().model_ns;
  return status;
}

}  // namespace perdure
