// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/object_set.hpp"

#include <algorithm>
#include <array>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "ipv/this_thread.hpp"
#include "pool/fault_handler.hpp"

namespace perdure {
namespace {

// The objects that faults may concern. Read by the fault handler: objects are published when they
// are started, and taken away before they are destroyed.
std::array<std::atomic<InPlaceObject*>, ObjectSet::objects_max> published{};
std::atomic<std::size_t> published_count{0};
std::atomic<bool> a_set_is_open{false};

// A fault claimant.
bool let_store(std::uintptr_t address) {
  const std::size_t count = published_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    InPlaceObject* object = published[i].load(std::memory_order_relaxed);
    if (object->holds(address)) return object->fault();
  }
  return false;
}

ArrayShape shape_of(std::size_t bytes) {
  return {ArrayType::byte, ArrayMode::twin, false, {bytes}};
}

}  // namespace

ObjectSet::ObjectSet(Pool& pool, const IpvOptions& options)
    : pool_(pool),
      options_(options),
      writer_(pool.device(), options.threads),
      surroundings_{pool.device(), writer_} {
  surroundings_.guard = options.guard;
  surroundings_.move_views = options.move_views;
}

Result<std::unique_ptr<ObjectSet>> ObjectSet::open(Pool& pool, const IpvOptions& options) {
  if (pool.restarted()) {
    return Status(Code::wrong_state,
                  "perdure_ipv_open() takes a pool that was not restarted: perdure_ipv_restart() "
                  "does that once the objects are named");
  }
  if (a_set_is_open.exchange(true)) {
    return Status(Code::busy,
                  "this process has objects already; call perdure_ipv_close() before "
                  "perdure_ipv_open()");
  }
  std::unique_ptr<ObjectSet> set(new ObjectSet(pool, options));
  claim_faults(let_store);
  if (options.helper.value_or(processor_is_idle(pool.group().ranks()))) {
    PERDURE_TRY(set->start_flush_thread(options.threads));
  }
  return set;
}

ObjectSet::~ObjectSet() {
  (void)close();
  a_set_is_open = false;
}

Status ObjectSet::check_new(const std::string& name, void* address, std::size_t bytes) const {
  if (started_) {
    return {Code::wrong_state,
            "object " + quoted(name) + " must be named before perdure_ipv_restart()"};
  }
  if (address == nullptr || bytes == 0) {
    return {Code::invalid_argument,
            "object " + quoted(name) + " needs an address and at least one byte"};
  }
  if (objects_.size() == objects_max) {
    return {Code::no_space, "a process has at most " + std::to_string(objects_max) + " objects"};
  }
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  for (const auto& object : objects_) {
    if (first < object->first() + object->bytes() && object->first() < first + bytes) {
      return {Code::invalid_argument, "object " + quoted(name) + " overlaps object " +
                                          quoted(object->name()) + " in memory"};
    }
  }
  return Status::success();
}

Status ObjectSet::add(const std::string& name, void* address, std::size_t bytes, Tier tier,
                      bool whole_pages) {
  Status local = check_new(name, address, bytes);
  if (local.ok()) local = check_tier(tier);
  PERDURE_TRY(agree(pool_.group(), local));
  auto object =
      std::make_unique<InPlaceObject>(surroundings_, name, static_cast<std::byte*>(address), bytes,
                                      options_.tier.value_or(tier), whole_pages);
  ArrayOptions given;
  given.writer = object.get();
  PERDURE_TRY_ASSIGN(auto array, pool_.open_array(name, shape_of(bytes), given));
  object->attach(array);
  objects_.push_back(std::move(object));
  return Status::success();
}

Status ObjectSet::start_objects() {
  for (const auto& object : objects_) PERDURE_TRY(object->start());
  return Status::success();
}

Result<std::uint64_t> ObjectSet::restart() {
  if (started_) {
    return agree(pool_.group(), {Code::wrong_state, "perdure_ipv_restart() was called before"});
  }
  PERDURE_TRY_ASSIGN(auto version, pool_.restart());
  durable_version_ = version;
  started_ = true;
  publish();  // before the first view: another thread may store at once
  PERDURE_TRY(agree(pool_.group(), start_objects()));
  return version;
}

void ObjectSet::publish() {
  std::sort(objects_.begin(), objects_.end(),
            [](const auto& one, const auto& other) { return one->first() < other->first(); });
  for (std::size_t i = 0; i < objects_.size(); ++i) published[i] = objects_[i].get();
  published_count = objects_.size();
  if (objects_.empty()) return;
  low_ = objects_.front()->first();
  high_ = objects_.back()->first() + objects_.back()->bytes();
}

InPlaceObject* ObjectSet::find(std::uintptr_t address) const {
  if (address < low_ || address >= high_) return nullptr;
  const auto above = std::upper_bound(
      objects_.begin(), objects_.end(), address,
      [](std::uintptr_t wanted, const auto& object) { return wanted < object->first(); });
  if (above == objects_.begin()) return nullptr;
  InPlaceObject* object = std::prev(above)->get();
  return object->holds(address) ? object : nullptr;
}

InPlaceObject* ObjectSet::holding(std::uintptr_t address) const {
  const auto found = std::find_if(objects_.begin(), objects_.end(),
                                  [address](const auto& object) { return object->holds(address); });
  return found == objects_.end() ? nullptr : found->get();
}

InPlaceObject* ObjectSet::named(const std::string& name) const {
  const auto found = std::find_if(objects_.begin(), objects_.end(),
                                  [&name](const auto& object) { return object->name() == name; });
  return found == objects_.end() ? nullptr : found->get();
}

Status ObjectSet::start_flush_thread(unsigned threads) {
  if (threads != 0 && threads != options_.threads) {
    return {Code::invalid_argument,
            std::to_string(threads) + " threads that flush, but the objects were opened with " +
                std::to_string(options_.threads) + "; say 0, or the same in both"};
  }
  if (thread_ == nullptr) thread_ = std::make_unique<FlushThread>();
  thread_commits_ = options_.helper.value_or(true);
  return Status::success();
}

Status ObjectSet::wait() {
  if (thread_ == nullptr) return Status::success();
  const Status flushed = thread_->drain();
  if (flush_failure_.ok()) flush_failure_ = flushed;
  return commit_failure_.ok() ? flush_failure_ : commit_failure_;
}

// What else is open in the pool has no writer that would make the program wait; and a companion is
// called by the pool's thread only.
bool ObjectSet::commits_beside() const {
  return thread_commits_ && pool_.group().may_be_used_beside() &&
         pool_.open_arrays() == objects_.size() && !pool_.has_companions();
}

Status ObjectSet::hand_over(bool beside) {
  Status status;
  for (const auto& object : objects_) {
    const Status handed = object->hand_over(beside);
    if (status.ok()) status = handed;
  }
  return status;
}

Result<std::uint64_t> ObjectSet::persist() {
  if (!started_) {
    const Status early(Code::wrong_state, "perdure_ipv_restart() must be called first");
    (void)pool_.commit(early);  // the other ranks' commits fail
    return early;
  }
  ++calls_;
  (void)wait();
  Status failed = std::exchange(commit_failure_, Status::success());
  if (!failed.ok()) return failed;  // on all ranks: none goes on to another agreement
  if (calls_ % options_.every != 0) return durable_version_.load();
  const std::uint64_t now_ns = monotonic_ns();
  surroundings_.iteration_ns = now_ns - std::exchange(persisted_ns_, now_ns);
  const bool beside = commits_beside();
  surroundings_.beside = beside;
  surroundings_.committing = this_thread();
  surroundings_.under_way = 1;  // P1: before the first object counts as handed
  Status ready = std::exchange(flush_failure_, Status::success());
  const Status handed = hand_over(beside);
  if (ready.ok()) ready = handed;
  return beside ? commit_beside(ready) : commit_here(ready);
}

CommitOutcome ObjectSet::outcome_of(const Result<std::uint64_t>& committed) const {
  if (committed.ok()) return CommitOutcome::committed;
  return pool_.usable().ok() ? CommitOutcome::retracted : CommitOutcome::unknown;
}

// By the committing thread.
void ObjectSet::end_version(const Result<std::uint64_t>& committed) {
  const CommitOutcome outcome = outcome_of(committed);
  for (const auto& object : objects_) object->end_version(outcome);
  if (committed.ok()) durable_version_ = committed.value();
  surroundings_.end_wait();
}

Result<std::uint64_t> ObjectSet::commit_here(const Status& ready) {
  surroundings_.unfenced = 0;  // the commit fences for this thread
  auto committed = pool_.commit(ready);
  end_version(committed);
  return committed;
}

// Copies that this thread made are fenced by it (P6). A failure of the beginning is reported to
// the other ranks by the thread, and to the program when it waits.
Result<std::uint64_t> ObjectSet::commit_beside(const Status& ready) {
  Status begun = ready;
  if (surroundings_.unfenced.exchange(0) != 0 && begun.ok()) begun = pool_.device().fence();
  (void)pool_.commit_capture(begun);
  surroundings_.committing = 0;
  ++commits_beside_;
  thread_->add([this] {
    surroundings_.committing = this_thread();
    const auto committed = pool_.commit_captured();
    if (!committed.ok()) commit_failure_ = committed.status();
    end_version(committed);
    return Status::success();
  });
  return durable_version_.load();
}

void ObjectSet::queue_early_flush(InPlaceObject& object) {
  if (thread_ == nullptr || !object.queue_early_flush()) return;
  thread_->add([&object] { return object.flush_early(); });
}

void ObjectSet::nest_end(InPlaceObject& object) {
  if (object.nest_end()) queue_early_flush(object);
}

Status ObjectSet::flush_early(const void* address, std::size_t bytes) {
  if (thread_ == nullptr) thread_ = std::make_unique<FlushThread>();
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  InPlaceObject* object = find(first);
  if (object == nullptr) {
    thread_->add([address, bytes, threads = options_.threads] {
      return flush_memory(address, bytes, threads);
    });
    return Status::success();
  }
  const std::uint64_t offset = first - object->first();
  if (offset == 0 && bytes >= object->bytes()) {
    if (object->finish_stores()) queue_early_flush(*object);
    return Status::success();
  }
  const ByteRange range = object->take_for_flush({offset, offset + bytes});
  if (range.begin == range.end) return Status::success();
  thread_->add([this, range] {
    PERDURE_TRY(writer_.flush(range.begin, range.end - range.begin));
    return pool_.device().fence();
  });
  return Status::success();
}

void ObjectSet::touch(const void* address, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (!started_ || bytes == 0) return;
  for (const auto& object : objects_) {
    if (first < object->first() + object->bytes() && object->first() < first + bytes) {
      object->plain();
    }
  }
}

Status ObjectSet::close() {
  Status status = wait();
  if (started_ && !options_.report.empty()) {
    const Group& group = pool_.group();
    const std::string suffix = group.ranks() > 1 ? "." + std::to_string(group.rank()) : "";
    const Status written =
        write_output(options_.report + suffix, ipv_report(*this, durable_version_) + "\n");
    if (!written.ok() && status.ok()) {
      status = {written.code(), "the report can't be written: " + written.message()};
    }
  }
  for (const auto& object : objects_) object->leave();
  published_count = 0;
  low_ = high_ = 0;
  thread_.reset();
  for (const auto& object : objects_) {
    const Status closed = pool_.close_array(object->array(), false);
    if (status.ok()) status = closed;
  }
  objects_.clear();
  started_ = false;
  return status;
}

}  // namespace perdure
