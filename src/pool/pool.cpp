// SPDX-License-Identifier: BSD-3-Clause
#include "pool/pool.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "device/accelerators.hpp"
#include "pool/job_record.hpp"
#include "pool/open_pools.hpp"

namespace perdure {
namespace {

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

OpenPools<Pool*>& open_pools() {
  static auto& pools = *new OpenPools<Pool*>;  // they end after all destructors
  return pools;
}

}  // namespace

Status format_slots(Device& device, const Region& region, const EmptyVersion& begin) {
  Slots slots(device, region);
  const std::uint64_t parent = begin.version == 0 ? 0 : begin.version - 1;
  Catalogue empty;
  empty.version = begin.version;
  empty.parent = parent;
  empty.incarnation = begin.incarnation;
  empty.allocated_end = region.data_offset;
  PERDURE_TRY(slots.store_body(empty));
  for (std::uint32_t slot = 0; slot < slots.count(); ++slot) {
    const bool used =
        slot == slots.slot_of(begin.version) || slot == slots.slot_of(begin.version + 1);
    if (!used) slots.store_state({SlotState::unused, slot});
  }
  slots.store_state(state_of(SlotState::open, begin.version + 1, begin.version));
  PERDURE_TRY(device.fence());
  slots.store_state(state_of(SlotState::complete, begin.version, parent));
  return device.fence();
}

Pool::Pool(std::unique_ptr<Device> device, const Region& region, Group& group,
           const PoolOptions& options)
    : device_(std::move(device)),
      accelerators_(std::make_unique<Accelerators>()),
      region_(region),
      group_(group),
      options_(options),
      writer_(*device_, options.copy_threads),
      run_page_(group.rank(), group.ranks()),
      kept_(*device_, region) {}

Pool::~Pool() {
  for (Companion* companion : companions_) companion->pool_closed();
  open_pools().remove(directory(), this);
}

void Pool::set_directory(const std::string& directory, std::unique_ptr<RankChange> change) {
  change_ = std::move(change);
  note_place(canonical(directory));
  open_pools().add(this->directory(), this);
  next_.files().set_place(this->directory(), group_.rank(), job_id());
  if (!change_) return;
  status_.version = change_->old().version();
  status_.old_ranks = change_->old().ranks();
}

void Pool::note_place(const std::string& directory) {
  place_.set(directory, change_ ? directory + "/" + change_->file_name()
                                : rank_file_path(directory, group_.rank()));
}

Pool* Pool::find(const std::string& directory) {
  return open_pools().find(canonical(directory));
}

Result<std::unique_ptr<Pool>> Pool::attach(std::unique_ptr<Device> device, const Region& region,
                                           Group& group, const PoolOptions& options) {
  std::unique_ptr<Pool> pool(new Pool(std::move(device), region, group, options));
  PERDURE_TRY(pool->kept_.choose(group, options.allow_older));
  const Choice& choice = pool->kept_.chosen().choice;
  const std::uint64_t after = pool->chosen().incarnation + 1;
  pool->next_.begin(pool->chosen(), choice.next,
                    std::max(after, options.incarnation_min) + options.incarnations_of_taker);
  pool->status_.version = choice.version;
  pool->status_.fell_back = choice.fell_back;
  pool->status_.old_ranks = group.ranks();
  pool->status_.survives_power_failure =
      pool->device_->describe().persistence == PersistenceClass::power_failure;
  return pool;
}

Status Pool::located(const Status& status) const {
  if (status.code() != Code::damaged) return status;
  return Status(
      Code::damaged, "rank ", group_.rank(), ", ", device_->describe().name, ": ", status.message(),
      "; bring back a copy of the file, or restore another version: `perdure pool versions ",
      directory(), "` lists them",
      options_.taker == nullptr ? std::string() : options_.taker->whole_elsewhere());
}

Status Pool::check_usable() const {
  PERDURE_TRY(life_.check_usable());
  return check_all_there(group_);
}

Status Pool::check_committable() const {
  PERDURE_TRY(check_usable());
  if (!restarted()) {
    return {Code::wrong_state,
            "perdure_restart() must be called before the first commit, so that a version of an "
            "earlier run is never overwritten by mistake"};
  }
  if (change_) PERDURE_TRY(change_->check_all_taken());
  if (next_.version() >= version_max) return {Code::no_space, "no version numbers are left"};
  return Status::success();
}

Status Pool::open_successor() {
  if (!kept_.next_is_open()) release_up_to(next_.version());
  return kept_.open_next(next_.catalogue());
}

// What the program has now is what the next version notes.
Status Pool::note_program() {
  return next_.note([this] { return check_room_for("the arrays that are not open"); });
}

VersionUnderWay Pool::begin_next() {
  return next_.begin_commit(retained(), open_slot_index());
}

// What all forms of commit but the staged one do first: local, and before any store to a working
// copy. A version that is not `ready` is still the one that is retracted, not the one before.
VersionUnderWay Pool::begin_version(const Status& ready) {
  Status begun = ready;
  if (begun.ok()) {
    run_page_.set_phase(RunPhase::committing);
    begun = note_program();
  }
  VersionUnderWay version = begin_next();
  version.begun = begun;
  if (version.begun.ok()) version.begun = open_successor();
  if (version.begun.ok()) version.begun = version.collect_changes();
  return version;
}

// The token covers what keeps the device busy: the copies, and their way to the medium. The fence
// of commit.cpp, 1, then finds little to do; it may wait for nobody, so no token is held in it.
Status Pool::save_with_token(const VersionUnderWay& version, std::uint64_t& bytes) {
  const TokenScope token(options_.token.get(), IoKind::write);
  PERDURE_TRY(version.save(run_page_, bytes));
  return options_.token ? device_->fence() : Status::success();
}

Result<bool> Pool::admit_companion(const std::string& name, const std::string& obstacle) {
  if (options_.taker == nullptr) return false;
  const CollectiveCall call(group_, "MPI_File_open");
  return options_.taker->admit(name, obstacle);
}

Result<std::optional<HeldShare>> Pool::held_share(const std::string& name) {
  if (!of_image()) return std::optional<HeldShare>();
  if (options_.taker != nullptr) return options_.taker->held(name, status_.version);
  return Status(Code::wrong_state, directory(),
                " was brought back from images, which have what is committed with it: ", name,
                " can't be had without them; start the job with the same PERDURE_LEVELS");
}

Status Pool::not_both(const std::string& path) {
  return Status(Code::unsupported, path,
                " is a cached file, which goes back with the pool as such, and named by "
                "perdure_file(): it can't be both; leave the name out");
}

Status Pool::check_joinable(const Companion& companion) const {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(life_.check_open_to_others());
  if (companion.name().starts_with("file ") && next_.files().has(companion.name().substr(5))) {
    return not_both(companion.name().substr(5));
  }
  if (options_.taker != nullptr) PERDURE_TRY(check_changing());  // it would be asked to keep R
  if (restarted()) return Status::success();
  return Status(Code::wrong_state, companion.name(),
                " can be committed with a pool only when the pool has restarted; call "
                "perdure_restart(), or make its first window, before");
}

Status Pool::add_companion(Companion& companion, bool kept) {
  Status local = check_joinable(companion);
  if (!kept) {
    if (local.ok()) companions_.push_back(&companion);
    return local;
  }
  const CollectiveCall call(group_, "MPI_File_open");
  const auto newest = kept_.read(head());
  PERDURE_TRY(agree(group_, local.ok() ? newest.status() : local));
  companions_.push_back(&companion);
  return options_.taker->joined(companion, newest.value());
}

void Pool::remove_companion(Companion& companion) {
  if (std::erase(companions_, &companion) == 0) return;
  if (options_.taker != nullptr) options_.taker->leaving(companion);
}

Status Pool::prepare_companions(std::uint64_t version) {
  for (Companion* companion : companions_) PERDURE_TRY(companion->prepare(version));
  return Status::success();
}

Status Pool::check_alone(const std::string& what) const {
  if (companions_.empty()) return Status::success();
  return Status(Code::unsupported, companions_.front()->name(),
                " is committed with this pool, which ", what, " while it is");
}

// A rank that cannot take part still keeps step with the two agreements of a commit that fails
// (commit.cpp, 4 and I6), so that no other rank waits for it.
Status Pool::refuse_commit(const Status& state, const Subject& subject) {
  const Status all = agree(group_, state, subject);
  if (all.ok()) return all;
  if (Status closed = agree(group_, Status::success()); !closed.ok()) return closed;
  return all;
}

Result<std::uint64_t> Pool::commit(const Status& ready) {
  const CollectiveCall call(group_, "perdure_commit");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  if (Status state = check_committable(); !state.ok()) return refuse_commit(state);
  const std::uint64_t start_ns = monotonic_ns();
  return save_and_finish(begin_version(ready), start_ns);
}

void Pool::save_captured(VersionUnderWay& version) {
  if (version.begun.ok()) version.begun = save_with_token(version, version.saved_bytes);
  version.is_saved = true;
}

Result<std::uint64_t> Pool::save_and_finish(VersionUnderWay version, std::uint64_t start_ns) {
  if (!version.is_saved) save_captured(version);
  Status data = version.begun;
  if (data.ok()) data = prepare_companions(version.catalogue.version);
  version.blocked_ns += monotonic_ns() - start_ns;
  const std::uint64_t bytes = version.saved_bytes;
  return finish_commit(std::move(version), data, bytes);
}

Status Pool::commit_capture(const Status& ready) {
  const CollectiveCall call(group_, "perdure_ipv_persist");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  VersionUnderWay version = begin_version(ready.ok() ? check_committable() : ready);
  version.about = About::begun;
  const Status begun = version.begun;
  under_way_.capture(std::move(version));
  return begun;
}

void Pool::commit_save() {
  const std::uint64_t start_ns = monotonic_ns();
  VersionUnderWay& version = under_way_.captured();
  save_captured(version);
  version.blocked_ns += monotonic_ns() - start_ns;
  run_page_.set_phase(RunPhase::computing);
}

Result<std::uint64_t> Pool::commit_captured(const Status& saved) {
  const CollectiveCall call(group_, "perdure_ipv_persist");
  VersionUnderWay version = under_way_.take_captured();
  if (version.begun.ok()) version.begun = saved;
  if (Status state = check_committable(); !state.ok()) return refuse_commit(state);
  return save_and_finish(std::move(version), monotonic_ns());
}

Status Pool::set_stream(std::optional<ProgramStream> stream) {
  PERDURE_TRY(check_usable());
  if (stream && !CudaDriver::is_in_use(stream->kind)) {
    return Status(Code::unsupported, "the process has not begun to use the driver of ",
                  stream->kind == DriverKind::cuda ? "an NVIDIA GPU (libcuda.so.1)"
                                                   : "an AMD GPU (libamdhip64.so.6 or .7)",
                  ", so there can be no stream of it: name the stream when it has been made");
  }
  accelerators_->set_stream(stream);
  if (!stream || !under_way_.saving_buffers()) return Status::success();
  // As the stream that was named when that commit began.
  for (const auto& [number, open] : next_.arrays()) {
    if (open.array->on_device()) PERDURE_TRY(open.array->hold_stream());
  }
  return Status::success();
}

BackgroundSaver& Pool::saver() {
  if (!saver_) saver_ = std::make_unique<BackgroundSaver>(*device_, options_.token.get());
  return *saver_;
}

Status Pool::commit_begin() {
  const CollectiveCall call(group_, "perdure_commit_begin");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  PERDURE_TRY(check_committable());
  PERDURE_TRY(check_alone("can't be committed in the background"));
  const std::uint64_t start_ns = monotonic_ns();
  VersionUnderWay version = begin_version(Status::success());
  version.about = About::begun;
  const Status begun = version.begun;
  if (begun.ok()) {
    saver().start(version.arrays());
    run_page_.set_phase(RunPhase::computing);
  }
  version.blocked_ns = monotonic_ns() - start_ns;
  if (begun.ok()) {
    under_way_.save(std::move(version));
  } else {
    under_way_.fail(std::move(version));  // commit_wait() reports it to the other ranks
  }
  return begun;
}

// Whoever takes versions elsewhere is done with what is in the slot of `version`, or is older.
void Pool::release_up_to(std::uint64_t version) {
  const std::uint64_t slots = region_.geometry.slots;
  if (options_.taker != nullptr && version > slots) options_.taker->release(version - slots);
}

Status Pool::wait_until_saved(const VersionedArray& array) {
  if (options_.taker != nullptr) options_.taker->progress();
  if (!under_way_.saving_buffers()) return check_usable();
  const Stopwatch watch(under_way_.pending_version()->blocked_ns);
  saver_->wait_for(array);
  return Status::success();
}

Status Pool::check_writable(const VersionedArray& array) const {
  if (array.mode() != ArrayMode::twin || !commits(array)) return Status::success();
  return Status(Code::wrong_state, "array ", quoted(array.name()),
                " is committed where it is: it may be written to after perdure_commit_wait()");
}

Status Pool::before_write(VersionedArray& array) {
  PERDURE_TRY(check_writable(array));
  if (array.mode() == ArrayMode::twin) PERDURE_TRY(array.settle_writes());
  if (!array.on_device() || !under_way_.saving_buffers()) return wait_until_saved(array);
  if (options_.taker != nullptr) options_.taker->progress();
  const Stopwatch watch(under_way_.pending_version()->blocked_ns);
  return array.wait_until_free();
}

Status Pool::write(VersionedArray& array, std::uint64_t first_byte, std::uint64_t count_bytes,
                   const void* source) {
  if (count_bytes != 0) PERDURE_TRY(check_writable(array));
  const bool may_be_of_gpu = under_way_.saving() && accelerators_->stream() != nullptr;
  // What accelerators have is the saver's until then.
  if (may_be_of_gpu && kind_of(static_cast<const std::byte*>(source)) != MemoryKind::host) {
    wait_for_saver();
  }
  return array.write(first_byte, count_bytes, source);
}

Result<std::uint64_t> Pool::commit_wait() {
  const CollectiveCall call(group_, "perdure_commit_wait");
  if (!commit_pending()) {
    return refuse_commit(
        {Code::wrong_state, "perdure_commit_wait() without perdure_commit_begin()"});
  }
  VersionUnderWay version = under_way_.take_pending();
  run_page_.set_phase(RunPhase::committing);
  std::uint64_t bytes = 0;
  Status data = version.begun;
  if (data.ok()) {
    const Stopwatch watch(version.blocked_ns);
    data = saver_->wait_all(bytes);
  }
  run_page_.rehearse(KillPoint::copy, version.catalogue.version, version.iteration);
  return finish_commit(std::move(version), data, bytes);
}

Status Pool::check_all_staged() const {
  for (const auto& [number, open] : next_.arrays()) {
    if (open.array->staged()) {
      PERDURE_TRY(open.array->check_buffer_here());
      continue;
    }
    return Status(Code::wrong_state, "array ", quoted(open.array->name()), " is in ",
                  mode_name(open.array->mode()),
                  " mode and was not opened as staged, so the pool can't be committed "
                  "asynchronously; commit it synchronously");
  }
  return Status::success();
}

// The one agreement of commit_staged(): no rank leaves before all have staged. It is that of the
// version before, if there is one.
Status Pool::finish_before_staging() {
  if (commit_pending()) return commit_wait().status();
  return refuse_commit(Status::success(), {About::staging, next_.version()});
}

Result<std::uint64_t> Pool::commit_staged(const Status& ready) {
  const CollectiveCall call(group_, "a commit in the background");
  Status state = check_committable();
  if (state.ok()) state = check_alone("can't be committed in the background");
  if (!state.ok()) return refuse_commit(state);
  std::uint64_t staging_ns = 0;
  // A rank that can't stage reports it when all finish the version.
  Status staged = ready.ok() ? check_all_staged() : ready;
  if (under_way_.saving()) {
    const Stopwatch watch(under_way_.pending_version()->blocked_ns);
    saver_->wait_until_idle();
  }
  if (staged.ok()) {
    const Stopwatch watch(staging_ns);
    staged = note_program();
    for (const auto& [number, open] : next_.arrays()) open.array->stage();
  }
  PERDURE_TRY(finish_before_staging());
  VersionUnderWay version = begin_next();
  version.about = About::begun;
  version.blocked_ns = staging_ns;
  version.begun = staged.ok() ? open_successor() : staged;
  if (!version.begun.ok()) {
    under_way_.fail(std::move(version));
    return under_way_.pending_version()->begun;
  }
  saver().start(version.arrays());
  run_page_.set_phase(RunPhase::computing);
  under_way_.save_staged(std::move(version));
  return under_way_.pending_version()->catalogue.version;
}

// The version exists: it is the newest, and its participants have new roles.
void Pool::take_roles(const VersionUnderWay& version, bool next_is_open) {
  kept_.note(version.catalogue, next_is_open);
  version.take_roles(retained(), retained().slot_of(version.catalogue.version + 1));
  next_.follow(version);
}

void Pool::fail(const Status& status) {
  if (life_.must(status).ok()) return;
  for (Companion* companion : companions_) companion->failed(status);
}

void Pool::tell_companions(std::uint64_t version) {
  for (Companion* companion : companions_) companion->committed(version);
}

void Pool::take_version(const VersionUnderWay& version, bool next_is_open) {
  take_roles(version, next_is_open);
  if (!change_) tell_companions(version.catalogue.version);
  if (options_.taker != nullptr) options_.taker->committed(version.catalogue);
  if (options_.committed) options_.committed(version.catalogue.version);
}

CommitParties Pool::parties_of(const VersionUnderWay& version) {
  return {*device_, kept_.slots(),    kept_.pages(), group_, run_page_, version.iteration,
          {},       version.subject()};
}

Result<std::uint64_t> Pool::finish_commit(VersionUnderWay version, const Status& saved,
                                          std::uint64_t bytes) {
  const std::uint64_t start_ns = monotonic_ns();
  Status data = saved.ok() ? place_.check(start_ns) : saved;
  if (data.ok()) data = next_.files().make_durable();
  if (data.ok()) {
    version.name_copies();
    version.catalogue.committed_ns = wall_clock_ns();
    version.catalogue.allocated_end = kept_.allocated_end();
  }
  CommitParties parties = parties_of(version);
  if (options_.taker != nullptr) {
    // When all ranks have agreed, another one may store to copies that the next slot names.
    release_up_to(version.catalogue.version + 1);
    // A companion goes on from each version; what it was at the one before is known until then.
    if (!companions_.empty()) options_.taker->release(version.catalogue.version - 1);
    parties.words = options_.taker->words();
  }
  const CommitResult result = kept_.commit(parties, version.catalogue, data);
  run_page_.set_phase(RunPhase::computing);
  if (result.outcome == CommitOutcome::unknown) fail(result.status);
  if (result.outcome != CommitOutcome::committed) {
    version.retract();
    next_.fail(version, retained().arrays_of(head()));
    return result.status;
  }
  take_version(version, result.status.ok());
  if (change_) {
    const Status changed = finish_change(version.catalogue);
    fail(changed);
    PERDURE_TRY(changed);
    tell_companions(version.catalogue.version);  // pool.R9
  }
  note_commit(version, version.blocked_ns + monotonic_ns() - start_ns, bytes);
  return status_.version;
}

void Pool::note_commit(const VersionUnderWay& version, std::uint64_t blocked_ns,
                       std::uint64_t bytes) {
  status_.version = version.catalogue.version;
  status_.commits += 1;
  status_.commit_ns_last = blocked_ns;
  status_.commit_ns += blocked_ns;
  status_.committed_bytes += bytes;
  run_page_.set_committed(
      {status_.version, version.iteration, blocked_ns, bytes, device_->counters().model_ns});
}

PoolStatus Pool::status() const {
  PoolStatus status = status_;
  status.model_ns = device_->counters().model_ns;
  if (!accelerators_->any()) return status;
  for (const auto& [number, open] : next_.arrays()) {
    if (open.array->lacks_snapshot()) ++status.lacking_snapshots;
  }
  return status;
}

}  // namespace perdure
