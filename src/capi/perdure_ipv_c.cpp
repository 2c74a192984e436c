// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_ipv.h and perdure_ipv_abi.h over the classes of ipv/: checks arguments, finds the object,
// turns Status into codes, and no more.
#include "perdure/perdure_ipv.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/agreement.hpp"
#include "base/commit_watch.hpp"
#include "base/environment.hpp"
#include "base/ipv_builds.hpp"
#include "base/loaded_code.hpp"
#include "freed_objects.hpp"
#include "ipv/object_set.hpp"
#include "perdure/perdure_ipv_abi.h"
#include "pmem/flush.hpp"
#include "pmem/shared_view.hpp"
#include "pool_handle.hpp"

using perdure::Code;
using perdure::guarded;
using perdure::InPlaceObject;
using perdure::ObjectList;
using perdure::ObjectSet;
using perdure::Result;
using perdure::Status;
using perdure::Tier;
using perdure::view_page_bytes;
using perdure::WatchedCommit;

namespace {

// The objects of the process. Not destroyed at its end: a program that ends without
// perdure_ipv_close() waits for nobody.
ObjectSet* set = nullptr;
perdure_pool* set_pool = nullptr;

// perdure_flush_*() without objects.
std::unique_ptr<perdure::FlushThread> flush_thread;
unsigned flush_threads = 1;

// perdure_ipv_alloc(): what was given, and how many bytes were mapped.
struct Allocations {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> mapped;
};
Allocations& allocations() {
  static Allocations all;
  return all;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

Status need_set() {
  if (set != nullptr) return set_pool->fork.check("the pool of the objects");
  return {Code::wrong_state, "there are no objects; call perdure_ipv_open() first"};
}

// Of all objects.
uintptr_t low = 0;
uintptr_t high = 0;

// Compiled loops need not announce boxes where no object takes any.
void offer_boxes() {
  const bool boxes = set != nullptr && set->takes_boxes();
  if (boxes == (perdure_ipv_high != 0)) return;
  perdure_ipv_low = boxes ? low : 0;
  perdure_ipv_high = boxes ? high : 0;
}

void take_bounds() {
  const auto bounds = set == nullptr ? ObjectList::Bounds() : set->list().bounds();
  low = bounds.low;
  high = bounds.high;
  offer_boxes();
}

bool is_given(std::uintptr_t address) {  // by perdure_ipv_alloc()
  Allocations& all = allocations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.mapped.contains(address);
}

// Nothing else lies in its pages. What follows a block of the heap in its last page may be the
// allocator's own; a static array that perdure-clang compiled is padded.
bool has_whole_pages(const void* address, std::size_t bytes) {
  if (bytes % view_page_bytes == 0 || is_given(number(address))) return true;
  return bytes >= view_page_bytes && perdure::is_in_loaded_code(number(address));
}

// The program itself can free what is neither static nor of perdure_ipv_alloc().
void watch_memory() {
  const auto& objects = set->list().all();
  const bool some = std::ranges::any_of(objects, [](const auto& object) {
    return std::ranges::any_of(object->beginnings(), [](std::uintptr_t first) {
      return !is_given(first) && !perdure::is_in_loaded_code(first);
    });
  });
  perdure::FreedObjects::watch(set->list(), some);
}

// The hooks' first question; memory that is no object's costs two comparisons.
InPlaceObject* object_of(const void* address) {
  const std::uintptr_t at = number(address);
  if (at < low || at >= high) return nullptr;
  return set->list().find(at);
}

Status wait_for_flushes() {
  if (set != nullptr) return set->wait();
  return flush_thread == nullptr ? Status::success() : flush_thread->drain();
}

// What `name` does, in which ranks wait for each other.
int version_by(Result<std::uint64_t> (ObjectSet::*call)(), const char* name,
               std::uint64_t* version) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    const perdure::CollectiveCall collective(*set_pool->group, name);
    const WatchedCommit watched(set_pool->watch.get(), name);
    const auto durable = (set->*call)();
    offer_boxes();
    if (durable.ok() && version != nullptr) *version = durable.value();
    return durable.status();
  });
}

Status pin_object(const void* address, Status (InPlaceObject::*how)()) {
  PERDURE_TRY(need_set());
  InPlaceObject* object = object_of(address);
  if (object == nullptr) object = set->list().holding(number(address));
  if (object == nullptr) return {Code::not_found, "no object holds this address"};
  return (object->*how)();
}

Status resize(const char* name, const perdure::ObjectMemory& to) {
  PERDURE_TRY(need_set());
  if (name == nullptr) return {Code::invalid_argument, "a name is needed"};
  PERDURE_TRY(set->resize(name, to));
  take_bounds();
  watch_memory();
  return Status::success();
}

}  // namespace

extern "C" {

uintptr_t perdure_ipv_low = 0;
uintptr_t perdure_ipv_high = 0;
uintptr_t perdure_ipv_box_bytes_min = std::size_t{256} << 10U;

int perdure_ipv_open(perdure_pool* pool, const perdure_ipv_options* options) {
  return guarded([&]() -> Status {
    if (pool == nullptr) return {Code::invalid_argument, "a pool is needed"};
    const std::string overriding = perdure::environment("PERDURE_IPV");
    PERDURE_TRY_ASSIGN(auto given, perdure::ipv_options(options, overriding.c_str()));
    PERDURE_TRY_ASSIGN(auto opened, ObjectSet::open(*pool->pool, given));
    flush_thread.reset();
    set = std::move(opened).release();
    set_pool = pool;
    pool->objects = set;
    if (given.box_bytes) perdure_ipv_box_bytes_min = *given.box_bytes;
    return Status::success();
  });
}

int perdure_ipv_object(const char* name, void* address, size_t bytes,
                       const perdure_ipv_object_options* options) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    const perdure_ipv_object_options given =
        options == nullptr ? perdure_ipv_object_options{} : *options;
    if (given.own_pages != 0 && given.own_pages != 1) {
      return {Code::invalid_argument, "own_pages is 0 or 1"};
    }
    const perdure::CollectiveCall collective(*set_pool->group, "perdure_ipv_object");
    return set->add(name == nullptr ? "" : name, address, bytes, given.tier,
                    given.own_pages == 1 || has_whole_pages(address, bytes));
  });
}

int perdure_ipv_pair(const char* name, void* a, void* b, size_t bytes) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    const perdure::CollectiveCall collective(*set_pool->group, "perdure_ipv_pair");
    return set->add_pair(name == nullptr ? "" : name, a, b, bytes);
  });
}

int perdure_ipv_resize(const char* name, void* address, size_t bytes) {
  return guarded([&] {
    return resize(
        name, {static_cast<std::byte*>(address), nullptr, bytes, has_whole_pages(address, bytes)});
  });
}

int perdure_ipv_resize_pair(const char* name, void* a, void* b, size_t bytes) {
  return guarded([&]() -> Status {
    if (a == nullptr || b == nullptr) return {Code::invalid_argument, "two arrays are needed"};
    return resize(name, {static_cast<std::byte*>(a), static_cast<std::byte*>(b), bytes, true});
  });
}

int perdure_ipv_alive(const char* name, void** array) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    if (name == nullptr || array == nullptr) {
      return {Code::invalid_argument, "a name and a place are needed"};
    }
    PERDURE_TRY_ASSIGN(*array, set->alive_of(name));
    return Status::success();
  });
}

int perdure_ipv_ranks(const char* name, int ranks) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    if (name == nullptr || ranks < PERDURE_ROWS || ranks > PERDURE_BY_HAND) {
      return {Code::invalid_argument, "a name is needed, and `ranks` is one of enum perdure_ranks"};
    }
    return set->say_ranks(name, static_cast<perdure::RankRule>(ranks));
  });
}

void* perdure_ipv_alloc(size_t bytes) {
  constexpr std::size_t table_bytes = std::size_t{2} << 20U;
  const std::size_t pages =
      std::max<std::size_t>(perdure::align_up(bytes, view_page_bytes), view_page_bytes);
  const std::size_t align = pages >= table_bytes ? table_bytes : view_page_bytes;
  if (pages < bytes || pages + align < pages) return nullptr;
  void* mapped = ::mmap(nullptr, pages + align, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const std::uintptr_t first = perdure::align_up(number(mapped), align);
  if (first != number(mapped)) ::munmap(mapped, first - number(mapped));
  const std::uintptr_t end = number(mapped) + pages + align;
  if (first + pages != end) ::munmap(reinterpret_cast<void*>(first + pages), end - first - pages);
  Allocations& all = allocations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.mapped[first] = pages;
  return reinterpret_cast<void*>(first);
}

void perdure_ipv_free(void* address) {
  if (address == nullptr) return;
  Allocations& all = allocations();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto known = all.mapped.find(number(address));
  if (known == all.mapped.end()) return;
  const std::uintptr_t end = number(address) + known->second;
  if (set != nullptr && !set->started() && set->list().reaches_into(number(address), end)) {
    (void)perdure::report({Code::wrong_state,
                           "perdure_ipv_free() of an object that perdure_ipv_restart() has not "
                           "started; call that, or perdure_ipv_close(), before"});
    return;
  }
  if (!perdure::FreedObjects::may_go(number(address), end)) return;
  ::munmap(address, known->second);
  all.mapped.erase(known);
}

int perdure_ipv_restart(uint64_t* version) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    const perdure::CollectiveCall collective(*set_pool->group, "perdure_ipv_restart");
    const auto restored = set->restart();
    take_bounds();
    if (restored.ok()) watch_memory();
    if (restored.ok() && version != nullptr) *version = restored.value();
    return restored.status();
  });
}

int perdure_ipv_persist(uint64_t* version) {
  return version_by(&ObjectSet::persist, "perdure_ipv_persist", version);
}

int perdure_ipv_wait(uint64_t* version) {
  return version_by(&ObjectSet::finish, "perdure_ipv_wait", version);
}

int perdure_ipv_close(void) {
  return guarded([&]() -> Status {
    if (set == nullptr) return Status::success();
    low = high = perdure_ipv_low = perdure_ipv_high = 0;
    perdure::FreedObjects::stop();
    const perdure::CollectiveCall collective(*set_pool->group, "perdure_ipv_close");
    const Status closed = set->close();
    set_pool->objects = nullptr;
    delete set;
    set = nullptr;
    return closed;
  });
}

void perdure_ipv_touch(void* address, size_t bytes) {
  if (set != nullptr) set->touch(address, bytes);
}

int perdure_ipv_pin(const void* address) {
  return guarded([&] { return pin_object(address, &InPlaceObject::pin); });
}

int perdure_ipv_unpin(const void* address) {
  return guarded([&] { return pin_object(address, &InPlaceObject::unpin); });
}

int perdure_ipv_status(const char* name, perdure_ipv_object_status* status) {
  return guarded([&]() -> Status {
    PERDURE_TRY(need_set());
    if (name == nullptr || status == nullptr) {
      return {Code::invalid_argument, "a name and a place are needed"};
    }
    const InPlaceObject* object = set->list().named(name);
    if (object == nullptr) {
      return Status(Code::not_found, "there is no object ", perdure::quoted(name));
    }
    *status = object->status();
    return Status::success();
  });
}

int perdure_flush_init(unsigned threads) {
  return guarded([&]() -> Status {
    perdure::say_unknown_variables();  // there need be no pool
    if (threads > 256) {
      return Status(Code::invalid_argument, threads, " threads that flush; at most 256 make sense");
    }
    if (set != nullptr) return set->start_flush_thread(threads);
    flush_threads = std::max(threads, 1U);
    if (flush_thread == nullptr) flush_thread = std::make_unique<perdure::FlushThread>();
    return Status::success();
  });
}

int perdure_flush_async(const void* address, size_t bytes) {
  return guarded([&]() -> Status {
    if (address == nullptr && bytes != 0) {
      return {Code::invalid_argument, "an address is needed"};
    }
    if (bytes == 0) return Status::success();
    if (set != nullptr) return set->flush_early(address, bytes);
    if (flush_thread == nullptr) {
      return {Code::wrong_state, "perdure_flush_init() must be called first"};
    }
    flush_thread->add([address, bytes, threads = flush_threads] {
      return perdure::flush_memory(address, bytes, threads);
    });
    return Status::success();
  });
}

int perdure_flush_barrier(void) {
  return guarded([] { return wait_for_flushes(); });
}

struct perdure_ipv_answer perdure_ipv_box_begin(const struct perdure_ipv_box* box) {
  InPlaceObject* object = object_of(box->first);
  if (object == nullptr) return {0, PERDURE_IPV_NO_BOX};
  return set->box_begin(*object, *box);
}

void perdure_ipv_box_end(const struct perdure_ipv_box* box, int past_cache) {
  InPlaceObject* object = object_of(box->first);
  if (object != nullptr) set->box_end(*object, *box, past_cache != 0);
}

void perdure_ipv_plain(void* address) {
  InPlaceObject* object = object_of(address);
  if (object != nullptr) object->plain();
}

void perdure_ipv_build_is(const perdure_ipv_build* build) {
  try {
    perdure::note_ipv_build({std::string(build->hash, sizeof build->hash),
                             std::memcmp(build->word, PERDURE_IPV_CHECKED, sizeof build->word) == 0,
                             build->source});
  } catch (const std::bad_alloc&) {  // the report lacks it
  }
}

}  // extern "C"
