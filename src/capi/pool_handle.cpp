// SPDX-License-Identifier: BSD-3-Clause
#include "pool_handle.hpp"

#include <errno.h>  // program_invocation_short_name

#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/commit_watch.hpp"
#include "base/environment.hpp"
#include "freed_buffers.hpp"
#include "ipv/object_set.hpp"
#include "levels/levels.hpp"
#include "parked_pool.hpp"
#include "pmem/region_format.hpp"
#include "pool/rank_files.hpp"
#include "pool_ends.hpp"
#include "pool_energy.hpp"

perdure_pool::perdure_pool() = default;

perdure_pool::~perdure_pool() {
  perdure::note_closed(*this);
  for (const auto& array : arrays) perdure::FreedBuffers::forget(*array->array);
  if (levels && !fork.in_child()) levels->close(!closes_alone);
}

namespace perdure {
namespace {

thread_local std::string last_error;

constexpr unsigned known_flags = PERDURE_CREATE | PERDURE_MUST_EXIST | PERDURE_DISCARD |
                                 PERDURE_ALLOW_OLDER | PERDURE_ANY_JOB | PERDURE_ANY_OWNER |
                                 PERDURE_ANY_RANKS;

std::string text_or(const char* text, const std::string& otherwise) {
  if (text != nullptr && *text != '\0') return text;
  return otherwise;
}

// PERDURE_LOCK_WAIT_MS: how long to wait for a process that still holds a rank's file.
Status read_lock_wait(OpenOptions& options) {
  const std::string text = environment("PERDURE_LOCK_WAIT_MS");
  if (text.empty()) return Status::success();
  char* end = nullptr;
  const unsigned long wait_ms = std::strtoul(text.c_str(), &end, 10);
  if (*end != '\0' || wait_ms > 3600000) {
    return Status(Code::invalid_argument, "PERDURE_LOCK_WAIT_MS='", text, "' is not 0 to 3600000");
  }
  options.lock_wait_ms = static_cast<std::uint32_t>(wait_ms);
  return Status::success();
}

Status check_flags(unsigned flags) {
  if ((flags & ~known_flags) != 0) {
    return {Code::invalid_argument, "unknown flags in perdure_options.flags"};
  }
  if ((flags & PERDURE_MUST_EXIST) != 0 && (flags & (PERDURE_CREATE | PERDURE_DISCARD)) != 0) {
    return {Code::invalid_argument, "PERDURE_MUST_EXIST contradicts CREATE and DISCARD"};
  }
  return Status::success();
}

}  // namespace

int report(const Status& status) {
  last_error = status.message();
  return static_cast<int>(status.code());
}

PoolCall::PoolCall(const perdure_pool* pool) : pool_(pool) {
  if (pool == nullptr) {
    status_ = {Code::invalid_argument, "a pool, or an array of one, is needed"};
    return;
  }
  const auto name = [pool] {
    return "the pool " + (pool->pool ? pool->pool->directory() : std::string());
  };
  if (pool->fork.in_child()) {
    status_ = pool->fork.check(name());
  } else if (pool->in_call.exchange(true, std::memory_order_acquire)) {
    status_ = Status(Code::wrong_state, "another thread is in a call on ", name(),
                     "; one thread at a time may call into a pool");
  }
}

Status close_with_others(perdure_pool& pool) {
  const CollectiveCall call(*pool.group, "perdure_close", CollectiveCall::Kind::last);
  // The others may know nothing of this rank's exception, and never come.
  if (pool.group->ranks() > 1 && std::uncaught_exceptions() > 0) {
    pool.closes_alone = true;
    return Status::success();
  }
  const bool pending = pool.pool->commit_pending();
  const Subject subject{pending ? About::begun : About::nothing,
                        pending ? pool.pool->next_version() : 0};
  const WatchedCommit watched(pool.watch.get(), "perdure_close", WatchedCommit::Call::other);
  const Status all = agree(*pool.group, Status::success(), subject);
  pool.closes_alone = !all.ok();
  if (all.code() == Code::wrong_state && !pending) return Status::success();  // base.M5
  PERDURE_TRY(all);
  return pending ? pool.pool->commit_wait().status() : Status::success();
}

void quiesce(const perdure_pool* pool) {
  if (pool->objects != nullptr) (void)pool->objects->drain();  // reported by perdure_ipv_persist()
}

Status check_no_objects(const perdure_pool* pool) {
  if (pool->objects == nullptr) return Status::success();
  return {Code::wrong_state,
          "the pool has objects of in-place versioning: call perdure_ipv_restart(), "
          "perdure_ipv_persist() and, before the pool is closed, perdure_ipv_close()"};
}

Status read_delay(int mode, DelayMode& delay) {
  switch (mode) {
    case PERDURE_DELAY_VIRTUAL:
      delay = DelayMode::virtual_clock;
      return Status::success();
    case PERDURE_DELAY_WAIT:
      delay = DelayMode::wait;
      return Status::success();
    case PERDURE_DELAY_DRAIN:
      delay = DelayMode::drain;
      return Status::success();
    default:
      return Status(Code::invalid_argument, "delay is ", mode, "; it is one of enum perdure_delay");
  }
}

Result<OpenOptions> open_options(const perdure_options* given) {
  const perdure_options defaults{};
  const perdure_options& from = given == nullptr ? defaults : *given;
  PERDURE_TRY(check_flags(from.flags));
  OpenOptions options;
  options.must_exist = (from.flags & PERDURE_MUST_EXIST) != 0;
  options.discard = (from.flags & PERDURE_DISCARD) != 0;
  options.belongs = [](const std::string& name) {
    return parse_level_file_name(name).has_value() || is_part_name(name);
  };
  options.of_cached_file = [](const std::string& name) {
    return is_part_name(name) || name.ends_with(".part-note");
  };
  options.recover_files = file_recovery();
  options.any_ranks = (from.flags & PERDURE_ANY_RANKS) != 0;
  options.any_job = (from.flags & PERDURE_ANY_JOB) != 0;
  options.trust = trust_unless((from.flags & PERDURE_ANY_OWNER) != 0);
  options.pool.allow_older = (from.flags & PERDURE_ALLOW_OLDER) != 0;
  options.job_name = text_or(from.job, program_invocation_short_name);
  options.emulate = text_or(from.emulate, environment("PERDURE_EMULATE"));
  PERDURE_TRY(read_delay(from.delay, options.delay));
  if (from.copy_threads > 256) {
    return Status(Code::invalid_argument, "copy_threads is ", from.copy_threads,
                  "; at most 256 make sense");
  }
  options.keep = from.keep;
  PERDURE_TRY(read_lock_wait(options));
  options.pool.copy_threads = from.copy_threads == 0 ? 1 : from.copy_threads;
  if (options.job_name.size() >= job_name_bytes) {
    if (from.job != nullptr) {
      return Status(Code::invalid_argument, "the job name is longer than 63 bytes");
    }
    options.job_name.resize(job_name_bytes - 1);  // a program's own long name
  }
  return options;
}

// What all ranks must ask for alike: some of them would make exchanges that the others don't.
Status agree_on_request(Group& group, const Status& local, bool discard,
                        const LevelSettings& levels) {
  const std::string said =
      levels.text() + (discard ? ", PERDURE_DISCARD" : ", without PERDURE_DISCARD");
  PERDURE_TRY_ASSIGN(const bool same,
                     is_same_on_all(group, local, crc64(said.data(), said.size())));
  if (same) return Status::success();
  return Status(Code::invalid_argument, "the ranks open the pool in different ways, this one with ",
                said,
                "; give all the same options, and PERDURE_LEVELS to all or to none: not every "
                "launcher gives its environment to all ranks");
}

Status open_handle(std::unique_ptr<Group> group, const char* path, const perdure_options* options,
                   perdure_pool** pool) {
  const CollectiveCall call(*group, "perdure_open");
  say_unknown_variables();
  auto converted = open_options(options);
  Status local = converted.status();
  if (path == nullptr || *path == '\0' || pool == nullptr) {
    local = Status(Code::invalid_argument, "a path and a place for the pool are needed");
  }
  auto handle = std::make_unique<perdure_pool>();
  if (local.ok()) local = PoolEnergy::configure(path, *group, handle->energy);
  const char* const levels = options == nullptr ? nullptr : options->levels;
  auto settings = parse_level_settings(text_or(levels, environment("PERDURE_LEVELS")));
  if (local.ok()) local = settings.status();
  const bool discard = converted.ok() && converted.value().discard;
  PERDURE_TRY(
      agree_on_request(*group, local, discard, settings.ok() ? settings.value() : LevelSettings()));
  PERDURE_TRY(close_parked_pool(path, *group, Status::success()));
  OpenOptions with = converted.take();
  // Levels look at the rank files before they are opened.
  PERDURE_TRY(agree(
      *group, settle_names(path, group->rank(), group->ranks(), with.lock_wait_ms, with.trust)));
  PoolEnergy::attach(handle->energy, with.pool);
  PERDURE_TRY_ASSIGN(handle->levels, Levels::create(*group, path, settings.value(), with.trust,
                                                    handle->energy ? handle->energy->drains()
                                                                   : std::vector<DrainTarget>{}));
  with.pool.taker = handle->levels.get();
  auto found = handle->levels ? handle->levels->open(with) : open_pool(path, *group, with);
  if (!found.ok()) RunPage::report_refusal(group->rank(), group->ranks(), found.status());
  PERDURE_TRY_ASSIGN(auto opened, std::move(found));
  // Not every launcher gives its environment to all ranks: rank 0's counts.
  std::uint64_t watched = opened->run_page().may_be_stopped() ? 1 : 0;
  PERDURE_TRY(agree_max(*group, Status::success(), {&watched, 1}));
  handle->stop_watched = watched != 0;
  handle->group = std::move(group);
  handle->pool = std::move(opened);
  note_opened(*handle);
  *pool = handle.release();
  return Status::success();
}

}  // namespace perdure

extern "C" const char* perdure_last_error(void) {
  return perdure::last_error.c_str();
}
