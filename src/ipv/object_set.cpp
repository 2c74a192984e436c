// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/object_set.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/this_thread.hpp"
#include "ipv/copy_object.hpp"
#include "ipv/idle_processor.hpp"
#include "ipv/pair_object.hpp"
#include "ipv/stream_object.hpp"
#include "pool/buffer_memory.hpp"

namespace perdure {
namespace {

std::atomic<bool> a_set_is_open{false};

ArrayShape shape_of(std::size_t bytes) {
  return {ArrayType::byte, ArrayMode::twin, false, {bytes}};
}

// What the pool says of an array that it has with another size.
Result<VersionedArray*> opened_with_its_size(Result<VersionedArray*> opened) {
  if (opened.status().code() != Code::shape_mismatch) return opened;
  return Status(Code::shape_mismatch, opened.status().message(),
                ". An object begins with the size that it had: perdure_stored_shape() tells it "
                "before, and perdure_ipv_resize() changes it after perdure_ipv_restart()");
}

Status moved_untold(const InPlaceObject& object) {
  return Status(Code::wrong_state, "the memory of object ", quoted(object.name()),
                " was given to realloc(), and where its contents are now was not said, so there is "
                "no version of them: call perdure_ipv_resize() after realloc(), before the "
                "persistence point, even if address and size are as before");
}

Status not_whole_pages(const std::string& name) {
  return Status(Code::invalid_argument, "the arrays of pair ", quoted(name),
                " must begin at multiples of ", view_page_bytes,
                " bytes and not overlap; perdure_ipv_alloc() gives such memory");
}

bool can_be_a_pair(void* a, void* b, std::size_t bytes) {
  const auto one = reinterpret_cast<std::uintptr_t>(a);
  const auto other = reinterpret_cast<std::uintptr_t>(b);
  const auto apart = std::max(one, other) - std::min(one, other);
  return one % view_page_bytes == 0 && other % view_page_bytes == 0 && apart >= bytes;
}

}  // namespace

ObjectSet::ObjectSet(Pool& pool, const IpvOptions& options)
    : pool_(pool),
      options_(options),
      writer_(pool.device(), options.threads),
      surroundings_{pool.device(), writer_} {
  surroundings_.guard = options.guard;
  surroundings_.move_views = options.move_views;
  surroundings_.verify = options.verify;
  if (options.verify) check_.emplace();
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
  return set;
}

ObjectSet::~ObjectSet() {
  (void)close();
  a_set_is_open = false;
}

Status ObjectSet::check_new(const std::string& name, void* address, std::size_t bytes) const {
  if (started_) {
    return Status(Code::wrong_state, "object ", quoted(name),
                  " must be named before perdure_ipv_restart()");
  }
  if (address == nullptr && bytes != 0) {
    return Status(Code::invalid_argument, "object ", quoted(name), " needs an address");
  }
  if (objects_.all().size() == ObjectList::objects_max) {
    return Status(Code::no_space, "a process has at most ", ObjectList::objects_max, " objects");
  }
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  for (const auto& object : objects_.all()) {
    if (object->overlaps(first, first + bytes)) {
      return Status(Code::invalid_argument, "object ", quoted(name), " overlaps object ",
                    quoted(object->name()), " in memory");
    }
  }
  return Status::success();
}

Status ObjectSet::add(const std::string& name, void* address, std::size_t bytes, int tier,
                      bool whole_pages) {
  Status local = check_new(name, address, bytes);
  if (local.ok()) local = check_tier(tier);
  PERDURE_TRY(agree(pool_.group(), local));
  const Tier asked = options_.tier.value_or(static_cast<Tier>(tier));
  auto* const first = static_cast<std::byte*>(address);
  std::unique_ptr<InPlaceObject> object;
  if (asked == PERDURE_IPV_STREAM) {
    object = std::make_unique<StreamObject>(surroundings_, name, first, bytes, whole_pages);
  } else {
    object =
        std::make_unique<CopyObject>(surroundings_, name, first, bytes, asked, whole_pages, "");
  }
  return adopt(std::move(object), options_.lag != 0 && asked == PERDURE_IPV_STREAM);
}

Status ObjectSet::adopt(std::unique_ptr<InPlaceObject> object, bool spare_copy) {
  ArrayOptions given;
  given.writer = object.get();
  given.spare_copy = spare_copy;
  PERDURE_TRY_ASSIGN(auto array, opened_with_its_size(pool_.open_array_on_all(
                                     object->name(), shape_of(object->bytes()), given)));
  object->attach(array);
  objects_.add(std::move(object));
  return Status::success();
}

Status ObjectSet::check_size(const InPlaceObject& object, const ObjectMemory& to) const {
  const bool is_pair = dynamic_cast<const PairObject*>(&object) != nullptr;
  if (is_pair != (to.other != nullptr)) {
    return Status(Code::invalid_argument, quoted(object.name()), " is ",
                  is_pair ? "a pair: perdure_ipv_resize_pair() says where both its arrays lie"
                          : "no pair: perdure_ipv_resize() gives it another size");
  }
  if (is_pair && (to.bytes == 0 || !can_be_a_pair(to.address, to.other, to.bytes))) {
    return not_whole_pages(object.name());
  }
  for (const std::byte* const address : {to.address, to.other}) {
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    for (const auto& other : objects_.all()) {
      if (other.get() == &object || address == nullptr) continue;
      if (!other->reaches_into(first, first + to.bytes)) continue;
      return Status(Code::invalid_argument, "object ", quoted(object.name()),
                    " would overlap object ", quoted(other->name()), " in memory");
    }
  }
  return Status::success();
}

Status ObjectSet::resize(const std::string& name, const ObjectMemory& to) {
  if (!started_) {
    return Status(Code::wrong_state, "object ", quoted(name),
                  " gets another size after perdure_ipv_restart(); until then it is as long as "
                  "the pool has it, which perdure_stored_shape() tells");
  }
  InPlaceObject* const object = objects_.named(name);
  if (object == nullptr) return {Code::not_found, "there is no object " + quoted(name)};
  if (to.address == nullptr && to.bytes != 0) {
    return Status(Code::invalid_argument, "object ", quoted(name), " needs an address");
  }
  PERDURE_TRY(check_size(*object, to));
  const bool is_there = !object->ended() && to.address == object->address();
  if (is_there && to.bytes == object->bytes() && to.other == nullptr) return Status::success();
  (void)drain();  // the next version tells
  const auto in_pool = [&](bool elsewhere) {
    return pool_.resize_written(*object->array(), to.bytes, elsewhere);
  };
  const Status done = object->resize(to, in_pool);
  if (done.code() == Code::unsupported) {
    PERDURE_TRY(copy_from_now_on(*object, to, done.message(), in_pool));
  } else {
    PERDURE_TRY(done);
  }
  objects_.find_bounds();
  return Status::success();
}

// What the object shows is in the extent that its array leaves.
Status ObjectSet::copy_from_now_on(InPlaceObject& object, const ObjectMemory& to, std::string why,
                                   const ResizeInPool& in_pool) {
  auto copied = copied_in_place_of(object, to, std::move(why));
  [[maybe_unused]] const auto left = object.array()->entry().hold;
  PERDURE_TRY(in_pool(true));
  object.leave();
  return put(objects_.place_of(object), std::move(copied));
}

Status ObjectSet::say_ranks(const std::string& name, RankRule rule) {
  if (started_) {
    return {Code::wrong_state, "perdure_ipv_ranks() is called before perdure_ipv_restart()"};
  }
  if (objects_.named(name) == nullptr)
    return {Code::not_found, "there is no object " + quoted(name)};
  pool_.say_ranks(name, rule);
  return Status::success();
}

Status ObjectSet::check_pair(const std::string& name, void* a, void* b, std::size_t bytes) const {
  PERDURE_TRY(check_new(name, a, bytes));
  PERDURE_TRY(check_new(name, b, bytes));
  if (bytes == 0) return Status(Code::invalid_argument, "pair ", quoted(name), " needs bytes");
  return can_be_a_pair(a, b, bytes) ? Status::success() : not_whole_pages(name);
}

Status ObjectSet::add_pair(const std::string& name, void* a, void* b, std::size_t bytes) {
  static std::deque<std::uint64_t> alive;  // pools know them
  PERDURE_TRY(agree(pool_.group(), check_pair(name, a, b, bytes)));
  std::uint64_t& of_this = alive.emplace_back(0);
  PERDURE_TRY(pool_.bind_scalar(name + ":alive", &of_this, sizeof of_this));
  return adopt(std::make_unique<PairObject>(surroundings_, name, static_cast<std::byte*>(a),
                                            static_cast<std::byte*>(b), bytes, of_this),
               true);
}

Result<void*> ObjectSet::alive_of(const std::string& name) const {
  const auto* const pair = dynamic_cast<const PairObject*>(objects_.named(name));
  if (pair != nullptr) return static_cast<void*>(pair->alive());
  return Status(Code::not_found, "there is no pair ", quoted(name));
}

// A version whose contents are taken now and which is finished later can't hold what has no writer,
// nor a companion, which is prepared when the version is finished: what would be stored there
// meanwhile was not known. All ranks do the same.
Status ObjectSet::decide_lag() {
  const bool alone = pool_.open_arrays() == objects_.all().size() && !pool_.has_companions();
  std::uint64_t refused = options_.lag != 0 && alone ? 0 : 1;
  PERDURE_TRY(agree_any(pool_.group(), Status::success(), refused));
  surroundings_.lags = refused == 0;
  if (!surroundings_.lags) return Status::success();
  pool_.close_to_others(
      "the objects of this pool are finished one persistence point later (lag 1), so all else in "
      "it must be opened before perdure_ipv_restart(), or in another pool; or set lag to 0");
  return Status::success();
}

// Which persistence points commit, and what is compared after one, takes all ranks.
Status ObjectSet::agree_on_options() {
  const std::uint64_t own = 2 * std::uint64_t{options_.every} + (options_.verify ? 1 : 0);
  PERDURE_TRY_ASSIGN(const bool same, is_same_on_all(pool_.group(), Status::success(), own));
  if (same) return Status::success();
  return Status(Code::invalid_argument, "the ranks give different options of in-place versioning, ",
                "this one every=", options_.every, " and verify=", options_.verify ? "on" : "off",
                "; give all the same, and PERDURE_IPV to all or to none: not every "
                "launcher gives its environment to all ranks");
}

// What can't be streamed is copied.
Status ObjectSet::start_object(std::size_t place) {
  InPlaceObject& object = *objects_.all()[place];
  const Status started = object.start();
  if (started.code() != Code::unsupported) return started;
  const ObjectMemory memory{object.address(), nullptr, object.bytes(), false};
  return put(place, copied_in_place_of(object, memory, started.message()));
}

std::unique_ptr<InPlaceObject> ObjectSet::copied_in_place_of(const InPlaceObject& object,
                                                             const ObjectMemory& memory,
                                                             std::string why) {
  auto copied =
      std::make_unique<CopyObject>(surroundings_, object.name(), memory.address, memory.bytes,
                                   object.asked(), memory.whole_pages, std::move(why));
  copied->attach(object.array());
  return copied;
}

Status ObjectSet::put(std::size_t place, std::unique_ptr<InPlaceObject> object) {
  object->array()->set_writer(*object);
  PERDURE_TRY(object->start());
  objects_.replace(place, std::move(object));
  return Status::success();
}

Status ObjectSet::start_objects() {
  for (std::size_t place = 0; place < objects_.all().size(); ++place) {
    PERDURE_TRY(start_object(place));
  }
  surroundings_.unseen = stores_may_go_unseen();
  return Status::success();
}

Result<std::uint64_t> ObjectSet::restart() {
  if (started_) {
    return agree(pool_.group(), {Code::wrong_state, "perdure_ipv_restart() was called before"});
  }
  PERDURE_TRY(agree_on_options());
  PERDURE_TRY_ASSIGN(auto version, pool_.restart());
  PERDURE_TRY(decide_lag());
  PERDURE_TRY(decide_thread());
  durable_version_ = version;
  started_ = true;
  surroundings_.started = true;
  surroundings_.keeps_own = pool_.is_changing();
  objects_.publish();  // before the first view: another thread may store at once
  PERDURE_TRY(agree(pool_.group(), start_objects()));
  if (check_) check_->take(objects_.all());
  PERDURE_TRY(agree(pool_.group(), begin_accesses()));
  return version;
}

// What the emulation can't see is charged from what was counted elsewhere (ipv.md).
Status ObjectSet::begin_accesses() {
  if (!options_.accesses.any()) return Status::success();
  return perdure::begin_accesses(pool_.device(), options_.accesses);
}

bool ObjectSet::takes_boxes() const {
  return std::ranges::any_of(
      objects_.all(), [](const auto& object) { return object->tier() == PERDURE_IPV_STREAM; });
}

Status ObjectSet::decide_thread() {
  PERDURE_TRY_ASSIGN(const bool idle, processor_is_idle(pool_.group()));
  return options_.helper.value_or(idle) ? start_flush_thread(options_.threads) : Status::success();
}

Status ObjectSet::start_flush_thread(unsigned threads) {
  if (threads != 0 && threads != options_.threads) {
    return Status(Code::invalid_argument, threads,
                  " threads that flush, but the objects were opened with ", options_.threads,
                  "; say 0, or the same in both");
  }
  if (thread_ == nullptr) thread_ = std::make_unique<FlushThread>();
  return Status::success();
}

// What is queued is done.
Status ObjectSet::drain() {
  if (thread_ == nullptr) return flush_failure_;
  const Status flushed = thread_->drain();
  if (flush_failure_.ok()) flush_failure_ = flushed;
  return flush_failure_;
}

Status ObjectSet::wait() {
  const Status flushed = drain();
  if (under_way_ && pool_.group().ranks() == 1) finish_version();
  return commit_failure_.ok() ? flushed : commit_failure_;
}

// The answer about unseen stores holds from when pages were protected until the next time.
Status ObjectSet::hand_over() {
  Status status;
  for (const auto& object : objects_.all()) {
    const Status handed = object->moved() ? moved_untold(*object) : object->hand_over();
    if (status.ok()) status = handed;
  }
  surroundings_.unseen = stores_may_go_unseen();
  return status;
}

Result<std::uint64_t> ObjectSet::finish() {
  if (under_way_) finish_version();
  const Status failed = std::exchange(commit_failure_, Status::success());
  if (!failed.ok()) return failed;
  return durable_version_.load();
}

Result<std::uint64_t> ObjectSet::persist() {
  if (!started_) {
    const Status early(Code::wrong_state, "perdure_ipv_restart() must be called first");
    (void)pool_.commit(early);  // the other ranks' commits fail
    return early;
  }
  ++calls_;
  if (options_.accesses.any()) end_accesses(pool_.device());
  auto persisted = persist_now();
  (void)begin_accesses();  // no other answer than at the restart
  return persisted;
}

Result<std::uint64_t> ObjectSet::persist_now() {
  // On all ranks: if it failed, none goes on to another agreement.
  const Status finished = finish().status();
  if (!finished.ok() || calls_ % options_.every != 0) {
    for (const auto& object : objects_.all()) object->pass();
    PERDURE_TRY(finished);
    return durable_version_.load();
  }
  begin_version();
  return surroundings_.lags ? Result<std::uint64_t>(durable_version_.load()) : finish();
}

// ipv.P1 and ipv.P6: nothing is stored to while objects are handed over and saved. A failure is
//     reported to
// the other ranks when the version is finished.
void ObjectSet::begin_version() {
  report_ended();
  surroundings_.committing = this_thread();
  surroundings_.hold(true);
  (void)drain();
  surroundings_.next_version = durable_version_ + 1;
  Status ready = std::exchange(flush_failure_, Status::success());
  const Status handed = hand_over();
  if (ready.ok()) ready = handed;
  if (check_) check_->take(objects_.all());
  (void)pool_.commit_capture(ready);
  under_way_ = true;
  surroundings_.saves_beside = thread_ != nullptr && surroundings_.lags;
  pool_.commit_save();
  if (surroundings_.saves_beside) queue_saves();
  if (!surroundings_.lags) return;  // finish_version() follows at once
  surroundings_.committing = 0;
  surroundings_.hold(false);
}

CommitOutcome ObjectSet::outcome_of(const Result<std::uint64_t>& committed) const {
  if (committed.ok()) return CommitOutcome::committed;
  return pool_.usable().ok() ? CommitOutcome::retracted : CommitOutcome::unknown;
}

void ObjectSet::queue_saves() {
  for (const auto& object : objects_.all()) {
    if (!object->is_saved_beside()) continue;
    thread_->add([saved = object.get()] {
      saved->save_beside();
      return Status::success();
    });
  }
}

Status ObjectSet::finish_saves() {
  Status status;
  for (const auto& object : objects_.all()) {
    const Status saved = object->finish_save();
    if (status.ok()) status = saved;
  }
  return status;
}

Status ObjectSet::compare_version(std::uint64_t version) const {
  if (!check_) return Status::success();
  const auto arrays = pool_.arrays_of(version);
  const Status same = arrays.ok()
                          ? check_->compare(objects_.all(), arrays.value(), pool_.device(), version)
                          : arrays.status();
  return agree(pool_.group(), same);
}

// [collective]
void ObjectSet::finish_version() {
  (void)drain();
  surroundings_.committing = this_thread();
  surroundings_.hold(true);
  const auto committed = pool_.commit_captured(finish_saves());
  const CommitOutcome outcome = outcome_of(committed);
  for (const auto& object : objects_.all()) object->end_version(outcome);
  if (committed.ok()) durable_version_ = committed.value();
  commit_failure_ = committed.ok() ? compare_version(committed.value()) : committed.status();
  under_way_ = false;
  surroundings_.committing = 0;
  surroundings_.hold(false);
}

void ObjectSet::queue_early_flush(InPlaceObject& object) {
  if (thread_ == nullptr || !object.queue_early_flush()) return;
  thread_->add([&object] { return object.flush_early(); });
}

Status ObjectSet::flush_early(const void* address, std::size_t bytes) {
  if (thread_ == nullptr) thread_ = std::make_unique<FlushThread>();
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  InPlaceObject* object = objects_.find(first);
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

perdure_ipv_answer ObjectSet::box_begin(InPlaceObject& object, const perdure_ipv_box& box) {
  if (!object.takes_boxes()) return {0, PERDURE_IPV_NO_BOX};
  std::string onlooker = onlookers_.may_look(object.first(), object.first() + object.bytes());
  if (onlooker.empty()) return object.box_begin(box);
  object.refuse_box(std::move(onlooker));
  return {0, PERDURE_IPV_NO_BOX};
}

void ObjectSet::touch(const void* address, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  if (!started_ || bytes == 0) return;
  for (const auto& object : objects_.all()) {
    if (object->overlaps(first, first + bytes))
      object->touch(
          {std::max(first, object->first()) - object->first(), first + bytes - object->first()});
  }
}

// A program that goes on without an object may have meant to.
void ObjectSet::report_ended() {
  for (const auto& object : objects_.all()) {
    if (!object->reports_end()) continue;
    const std::string what =
        object->moved() ? moved_untold(*object).message()
                        : sentence("the memory of object ", quoted(object->name()),
                                   " was freed: versions from here on hold its contents of that "
                                   "moment");
    std::fprintf(stderr, "perdure: %s\n", what.c_str());
  }
}

Status ObjectSet::close() {
  const auto finished = finish();
  Status status = finished.ok() ? drain() : finished.status();
  if (started_ && !options_.report.empty()) {
    const Group& group = pool_.group();
    const std::string suffix = group.ranks() > 1 ? "." + std::to_string(group.rank()) : "";
    const Status written =
        write_output(options_.report + suffix, ipv_report(*this, durable_version_) + "\n");
    if (!written.ok() && status.ok()) {
      status = {written.code(), "the report can't be written: " + written.message()};
    }
  }
  for (const auto& object : objects_.all()) object->leave();
  objects_.withdraw();
  thread_.reset();
  for (const auto& object : objects_.all()) {
    const Status closed = pool_.close_array(object->array(), false);
    if (status.ok()) status = closed;
  }
  objects_.clear();
  started_ = false;
  return status;
}

}  // namespace perdure
