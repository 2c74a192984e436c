// SPDX-License-Identifier: BSD-3-Clause
#include "trace/recorder/recorder.hpp"

#include <unistd.h>

#include <array>
#include <csignal>

#include "base/clock.hpp"

namespace perdure::trace {
namespace {

constexpr std::size_t helper_stack_bytes = std::size_t{256} << 10U;

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderOptions& options,
                                                   const std::string& path) {
  PERDURE_TRY_ASSIGN(auto writer, Writer::create(path, options.header));
  return std::unique_ptr<Recorder>(new Recorder(options, std::move(writer)));
}

Recorder::Recorder(const RecorderOptions& options, std::unique_ptr<Writer> writer)
    : options_(options),
      process_(::getpid()),
      batches_(options.buffer_bytes),
      writer_(std::move(writer)),
      began_ns_(monotonic_ns()) {}

Recorder::~Recorder() {
  stop_helper();
}

void Recorder::start_helper(bool is_used, void (*begin)()) {
  begin_helper_ = begin;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_attr_setstacksize(&attributes, helper_stack_bytes);
  sigset_t all, before;  // signals are for the program's own threads
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  has_helper_ = ::pthread_create(&helper_, &attributes, run_helper, this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  batches_.set_helped(is_used && has_helper_);
}

void* Recorder::run_helper(void* context) {
  auto& self = *static_cast<Recorder*>(context);
  if (self.begin_helper_ != nullptr) self.begin_helper_();
  self.help();
  return nullptr;
}

void Recorder::help() {
  while (batches_.await_work()) {
    for (bool found = true; found;) {
      const std::lock_guard writing(writing_);
      found = write_next_batch();
    }
  }
}

void Recorder::stop_helper() {
  if (!has_helper_ || ::getpid() != process_) return;
  batches_.stop();
  ::pthread_join(helper_, nullptr);
  has_helper_ = false;
}

Stream& Recorder::begin_thread() {
  return batches_.begin_stream(options_.header, Stream::Host{make_room, this});
}

void Recorder::end_thread(Stream& stream) {
  if (::getpid() != process_) return;
  batches_.hand_over(stream, true);
  batches_.end_stream(stream);
}

// A child that was made past fork() (vfork, clone) has no business in the file, nor perhaps in this
// memory, and the locks may be held by a helper that it does not have.
bool Recorder::make_room(void* context, Stream& stream) {
  auto& self = *static_cast<Recorder*>(context);
  if (::getpid() != self.process_) return false;
  if (stream.batch() != nullptr) self.batches_.hand_over(stream, false);
  while (!self.batches_.take(stream)) {
    const std::lock_guard writing(self.writing_);
    self.write_next_batch();
  }
  return true;
}

// The caller holds `writing_`. False where no batch is full.
bool Recorder::write_next_batch() {
  WordBatch* const batch = batches_.next_full();
  if (batch == nullptr) return false;
  write_batch(*batch, batch->filled);
  if (batch->ends_thread) flush_window(*batch->stream);
  batches_.give_back(*batch);
  return true;
}

void Recorder::write_batch(WordBatch& batch, const std::uint64_t* end) {
  Stream& stream = *batch.stream;
  const std::uint64_t* word = batch.taken;
  batch.taken += end - word;
  if (!is_wanted()) return;  // what a window holds when that changes has been flushed
  while (word != end) {
    word = stream.window().add(word, end, stream.word_shift(),
                               [this](std::uint64_t page) { writer_->prefetch(page); });
    if (word != end) flush_window(stream);
  }
}

void Recorder::flush_window(Stream& stream) {
  Window& window = stream.window();
  if (!is_wanted()) {
    window.flush([](std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t) {});
    return;
  }
  std::array<std::uint32_t, Window::pages_most> ids;
  for (std::uint32_t index = 0; index < window.count(); ++index) {
    ids[index] = writer_->page_id(window.page_number(index));
  }
  window.flush(
      [&](std::uint64_t page, std::uint32_t index, std::uint32_t reads, std::uint32_t writes) {
        if (index == Window::no_index) return writer_->append(page, reads, writes, stream.number());
        writer_->append_id(ids[index], reads, writes, stream.number());
      });
}

// The caller holds `writing_`.
void Recorder::flush_all() {
  while (write_next_batch()) {
  }
  batches_.write_all(  // and what was handed over meanwhile
      [this](WordBatch& batch, const std::uint64_t* end) { write_batch(batch, end); },
      [this](Stream& stream) { flush_window(stream); });
}

void Recorder::lock() {
  writing_.lock();
  batches_.lock();
}

void Recorder::unlock() {
  batches_.unlock();
  writing_.unlock();
}

// The helper is not among the threads that a child has.
void Recorder::abandon() {
  is_open_ = false;
  batches_.abandon();
}

bool Recorder::is_ours() const {
  return is_open_ && ::getpid() == process_;
}

// What is in the windows now belongs to the trace.
bool Recorder::is_wanted() const {
  return is_open_ && !(options_.marked_only && region_.empty());
}

Status Recorder::begin_region(const std::string& name) {
  if (::getpid() != process_) return Status::success();
  const std::lock_guard writing(writing_);
  if (!is_ours()) return Status::success();
  if (!region_.empty()) {
    return Status(Code::wrong_state, "region '", name, "' begins inside of '", region_, "'");
  }
  if (name.empty() || name.size() > 255) {
    return {Code::invalid_argument, "a region's name has 1 to 255 bytes"};
  }
  flush_all();
  writer_->begin_region(name);
  region_ = name;
  return Status::success();
}

Status Recorder::end_region() {
  if (::getpid() != process_) return Status::success();
  const std::lock_guard writing(writing_);
  if (!is_ours()) return Status::success();
  if (region_.empty()) return {Code::wrong_state, "no region is there to be ended"};
  flush_all();
  writer_->end_region();
  region_.clear();
  return Status::success();
}

Status Recorder::finish() {
  if (::getpid() != process_) return Status::success();
  const std::lock_guard writing(writing_);
  if (!is_ours()) return Status::success();
  flush_all();
  is_open_ = false;
  if (!region_.empty()) writer_->end_region();
  Ending ending;
  ending.compute_ns = options_.compute_ns;
  if (options_.times) ending.elapsed_ns = monotonic_ns() - began_ns_;
  return writer_->finish(ending);
}

}  // namespace perdure::trace
