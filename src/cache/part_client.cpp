// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_client.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/clock.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t connect_wait_ms = 30000;
constexpr std::uint64_t greeting_wait_ns = 60'000'000'000;
constexpr unsigned attempts_max = 4;
constexpr unsigned pause_us = 100'000;
constexpr std::size_t outstanding_max = 1024;
constexpr std::uint64_t outstanding_bytes_max = std::uint64_t{4} << 20;

bool is_code(std::int32_t code) {
  return code <= 0 && code >= static_cast<std::int32_t>(Code::peer_failed);
}

}  // namespace

Result<std::unique_ptr<PartClient>> PartClient::try_to_connect(const ServerAddress& address,
                                                               const ServiceToken& token) {
  auto socket = connect_to(address, connect_wait_ms);
  if (!socket.ok()) {
    return Status(socket.status().code(),
                  socket.status().message() +
                      ": it keeps a part of a cached file; let the network of the job reach it "
                      "(PERDURE_CACHE_HOST), or open the file with perdure_cache=off");
  }
  std::unique_ptr<PartClient> client(new PartClient(socket.take(), text_of(address)));
  PERDURE_TRY(client->greet(token));
  return client;
}

// A server to which strangers connect in crowds gives up who is slow to answer (reception.hpp,
// cache.E1).
Result<std::unique_ptr<PartClient>> PartClient::connect(const ServerAddress& address,
                                                        const ServiceToken& token) {
  for (unsigned attempt = 1;; ++attempt) {
    auto client = try_to_connect(address, token);
    if (client.status().code() != Code::io_error || attempt == attempts_max) return client;
    ::usleep(attempt * pause_us);
  }
}

PartClient::~PartClient() {
  (void)drain();
}

Status PartClient::greet(const ServiceToken& token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status greeted = exchange_proofs(token);
  if (greeted.ok() || greeted.code() == Code::foreign || greeted.code() == Code::unsupported) {
    return greeted;
  }
  return broken(greeted);
}

Status PartClient::exchange_proofs(const ServiceToken& token) {
  const std::uint64_t deadline_ns = monotonic_ns() + greeting_wait_ns;
  Status stranger(Code::foreign, name_,
                  " should keep a part of a cached file, but is no process of this job: "
                  "nothing was sent to it; see who listens there (ss -ltnp), and recover "
                  "what the node keeps with `perdure cache recover` there");
  ChallengeFormat challenge;
  PERDURE_TRY(receive_by(socket_, &challenge, sizeof challenge, deadline_ns));
  if (challenge.magic != greeting_magic) return stranger;
  if (challenge.protocol_version != protocol_version) {
    return Status(Code::unsupported, "this node's Perdure speaks protocol ", protocol_version,
                  ", and that of ", name_, " speaks ", challenge.protocol_version,
                  "; use one build on all nodes");
  }
  PERDURE_TRY_ASSIGN(auto greeting, greeting_for(token, name_, challenge));
  iovec piece{&greeting, sizeof(GreetingFormat)};
  PERDURE_TRY(send_whole(socket_, &piece, 1));
  WelcomeFormat welcome;
  PERDURE_TRY(receive_by(socket_, &welcome, sizeof welcome, deadline_ns));
  const bool known = is_of_job(token, name_, challenge, greeting, welcome);
  return known ? Status::success() : stranger;
}

// Nothing that was asked for will come any more.
Status PartClient::broken(const Status& why) {
  broken_ = Status(Code::io_error, "the connection to ", name_,
                   ", which keeps a part of a cached file: ", why.message(),
                   "; its process has ended, or refused this one: see what that node says, and "
                   "recover what it keeps with `perdure cache recover` there");
  shut_down(socket_);
  for (const Outstanding& pending : outstanding_) {
    if (pending.outcome->status.ok()) pending.outcome->status = broken_;
    --pending.outcome->awaited;
  }
  outstanding_.clear();
  outstanding_bytes_ = 0;
  return broken_;
}

Status PartClient::receive_answer() {
  AnswerFormat answer;
  if (const Status got = receive_whole(socket_, &answer, sizeof answer); !got.ok()) {
    return broken(got);
  }
  const Outstanding& pending = outstanding_.front();
  const std::uint64_t expected = pending.is_read && answer.code == 0 ? pending.bytes : 0;
  if (!is_code(answer.code) || answer.message_bytes > message_bytes_max ||
      answer.payload_bytes != expected) {
    return broken({Code::damaged, "an answer that can't be right"});
  }
  std::string message(answer.message_bytes, '\0');
  Status got = receive_whole(socket_, message.data(), message.size());
  if (got.ok() && expected != 0) got = receive_payload(pending.to, expected);
  if (!got.ok()) return broken(got);
  Outcome& outcome = *pending.outcome;
  outstanding_bytes_ -= pending.bytes;
  outstanding_.pop_front();
  --outcome.awaited;
  std::copy_n(answer.values, 2, outcome.values);
  if (answer.code != 0 && outcome.status.ok()) {
    outcome.status = Status(Code{answer.code}, std::move(message));
  }
  return Status::success();
}

Status PartClient::receive_payload(const std::vector<MemoryPiece>& to, std::uint64_t bytes) {
  if (to.size() == 1) return receive_whole(socket_, to.front().at, bytes);
  together_.resize(bytes);
  PERDURE_TRY(receive_whole(socket_, together_.data(), bytes));
  scatter(together_.data(), to);
  return Status::success();
}

// cache.T2.
Status PartClient::send(const RequestFormat& request, std::span<iovec> rest) {
  RequestFormat head = request;
  iovec pieces[3] = {{&head, sizeof head}, {}, {}};
  std::ranges::copy(rest, pieces + 1);
  const std::size_t count = 1 + rest.size();
  std::uint64_t left = 0;
  for (const iovec& piece : pieces) left += piece.iov_len;
  while (left != 0) {
    auto moved = send_some(socket_, pieces, count, false);
    if (!moved.ok()) return broken(moved.status());
    left -= moved.value().bytes;
    if (!moved.value().again) continue;
    auto receivable = await_either(socket_);
    if (!receivable.ok()) return broken(receivable.status());
    if (!receivable.value()) continue;
    // Without a request no answer is due: the connection has ended, and the next send says so.
    if (!outstanding_.empty()) PERDURE_TRY(receive_answer());
  }
  return Status::success();
}

// `rest` is what follows the request: at most two pieces.
Status PartClient::submit(const RequestFormat& request, std::span<iovec> rest,
                          Outstanding pending) {
  if (!broken_.ok()) return broken_;
  const std::uint64_t bytes = pending.bytes;
  while (!outstanding_.empty() && (outstanding_.size() >= outstanding_max ||
                                   outstanding_bytes_ + bytes > outstanding_bytes_max)) {
    PERDURE_TRY(receive_answer());  // cache.T1
  }
  PERDURE_TRY(send(request, rest));
  ++pending.outcome->awaited;
  outstanding_.push_back(std::move(pending));
  outstanding_bytes_ += bytes;
  return Status::success();
}

Status PartClient::receive_all() {
  while (!outstanding_.empty()) PERDURE_TRY(receive_answer());
  return broken_;
}

Status PartClient::read(std::uint64_t offset, void* to, std::uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto* place = static_cast<std::byte*>(to);
  Outcome outcome;
  while (bytes != 0) {
    const std::uint64_t run = std::min<std::uint64_t>(bytes, payload_bytes_max);
    const RequestFormat request{static_cast<std::uint32_t>(Verb::read), 0, offset, run, 0};
    PERDURE_TRY(submit(request, {}, {run, true, &outcome, {{place, run}}}));
    offset += run;
    place += run;
    bytes -= run;
  }
  PERDURE_TRY(receive_all());
  return outcome.status;
}

Status PartClient::write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                         Acknowledge when) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto* place = static_cast<const std::byte*>(from);
  Outcome outcome;
  Outcome* told = when == Acknowledge::async ? &async_ : &outcome;
  while (bytes != 0) {
    const std::uint64_t run = std::min<std::uint64_t>(bytes, payload_bytes_max);
    const RequestFormat request{static_cast<std::uint32_t>(Verb::write),
                                static_cast<std::uint32_t>(when), offset, run, 0};
    iovec payload{const_cast<std::byte*>(place), run};  // it is only read
    PERDURE_TRY(submit(request, {&payload, 1}, {run, false, told, {}}));
    offset += run;
    place += run;
    bytes -= run;
  }
  if (when == Acknowledge::async) return Status::success();
  PERDURE_TRY(receive_all());
  return outcome.status;
}

Status PartClient::begin_read(const PieceList& pieces, Outcome& outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<PiecesFormat>& runs = pieces.runs();
  const std::uint64_t bytes = pieces.bytes();
  const RequestFormat request{static_cast<std::uint32_t>(Verb::read_pieces), 0, runs.front().offset,
                              bytes, runs.size()};
  iovec list{const_cast<PiecesFormat*>(runs.data()), runs.size() * sizeof(PiecesFormat)};
  return submit(request, {&list, 1}, {bytes, true, &outcome, pieces.memory()});
}

Status PartClient::begin_write(const PieceList& pieces, Acknowledge when, Outcome& outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<PiecesFormat>& runs = pieces.runs();
  const std::uint64_t bytes = pieces.bytes();
  std::byte* from = pieces.memory().front().at;
  std::vector<std::byte> together;
  if (pieces.memory().size() != 1) {
    together.resize(bytes);
    gather(pieces.memory(), together.data());
    from = together.data();
  }
  const RequestFormat request{static_cast<std::uint32_t>(Verb::write_pieces),
                              static_cast<std::uint32_t>(when), runs.front().offset, bytes,
                              runs.size()};
  iovec rest[2] = {{const_cast<PiecesFormat*>(runs.data()), runs.size() * sizeof(PiecesFormat)},
                   {from, bytes}};
  Outcome* told = when == Acknowledge::async ? &async_ : &outcome;
  return submit(request, rest, {bytes, false, told, {}});
}

Status PartClient::await(Outcome& outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (outcome.awaited != 0) PERDURE_TRY(receive_answer());
  return outcome.status;
}

Status PartClient::drain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return drain_locked();
}

Status PartClient::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status drained = drain_locked();
  if (broken_.ok()) (void)broken({Code::wrong_state, "this process is ending"});
  return drained;
}

Status PartClient::drain_locked() {
  const Status received = receive_all();
  const Status first = std::exchange(async_.status, Status::success());
  return first.ok() ? received : first;
}

Outcome PartClient::ask(Verb verb, std::uint64_t value, int option, std::uint64_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Outcome outcome;
  const RequestFormat request{static_cast<std::uint32_t>(verb), static_cast<std::uint32_t>(option),
                              offset, 0, value};
  Status done = submit(request, {}, {0, false, &outcome, {}});
  if (done.ok()) done = receive_all();
  if (!done.ok()) outcome.status = done;
  return outcome;
}

Result<std::uint64_t> PartClient::ask_for_value(Verb verb, std::uint64_t value, int option,
                                                std::uint64_t offset) {
  const Outcome outcome = ask(verb, value, option, offset);
  if (!outcome.status.ok()) return outcome.status;
  return outcome.values[0];
}

Result<WriteBackTally> PartClient::write_back(std::uint64_t turn, bool sync) {
  const Outcome outcome = ask(Verb::write_back, turn, sync ? 1 : 0);
  if (!outcome.status.ok()) return outcome.status;
  return WriteBackTally{outcome.values[0], outcome.values[1]};
}

Result<int> PartClient::take_pointer() {
  PERDURE_TRY_ASSIGN(auto slot, ask_for_value(Verb::take_pointer));
  return static_cast<int>(static_cast<std::int64_t>(slot));
}

Result<bool> PartClient::try_lock(std::uint64_t owner) {
  PERDURE_TRY_ASSIGN(auto taken, ask_for_value(Verb::try_lock, owner));
  return taken != 0;
}

}  // namespace perdure
