// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "cache/signals_blocked.hpp"

namespace perdure {
namespace {

constexpr int rest_ms = 100;  // after a failure to accept
constexpr std::size_t input_bytes = 16384;
constexpr std::size_t answers_bytes_max = 16384;
constexpr std::size_t pieces_max = 64;

}  // namespace

std::unique_ptr<std::byte[]> WriteTurns::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  given_.wait(lock, [this] { return taken_ < writers_max; });
  ++taken_;
  if (idle_.empty()) return std::make_unique_for_overwrite<std::byte[]>(payload_bytes_max);
  auto buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void WriteTurns::give(std::unique_ptr<std::byte[]> buffer) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(buffer));
    --taken_;
  }
  given_.notify_one();
}

// A connection and the thread that serves it.
class PartServer::Session {
 public:
  Session(FileHandle socket, PartService& service, WriteTurns& turns,
          std::atomic<std::uint32_t>& clients)
      : socket_(std::move(socket)), service_(service), turns_(turns), clients_(clients) {
    thread_ = std::thread([this] {
      (void)serve();  // why a connection ended is the client's to tell
      if (lock_owner_ != 0) (void)service_.unlock(lock_owner_);  // the client has died
      shut_down(socket_);
      clients_.fetch_sub(1);
      ended_.store(true, std::memory_order_release);
    });
  }
  ~Session() {
    shut_down(socket_);
    thread_.join();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool ended() const { return ended_.load(std::memory_order_acquire); }
  void interrupt() { shut_down(socket_); }

 private:
  Status serve();
  Status serve_one();
  Status serve_read(const RequestFormat& request);
  Status serve_write(const RequestFormat& request);
  Status serve_read_pieces(const RequestFormat& request);
  Status write(const RequestFormat& request, const std::byte* from);
  Status send_range(std::uint64_t offset, std::uint64_t bytes);

  Status receive(void* to, std::size_t bytes);
  void answer(const Status& status, const std::uint64_t (&values)[2], std::uint64_t payload_bytes);
  Status send_answers();

  FileHandle socket_;
  PartService& service_;
  WriteTurns& turns_;
  std::atomic<std::uint32_t>& clients_;  // outlives the thread
  std::atomic<bool> ended_{false};
  // Received and not yet looked at: many small requests come in one piece.
  std::array<std::byte, input_bytes> input_;
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  std::vector<std::byte> answers_;  // not yet sent
  std::uint64_t lock_owner_ = 0;    // for whom the lock is held
  std::thread thread_;              // last: it uses what is above
};

// Before it waits for the peer, the peer has all answers.
Status PartServer::Session::receive(void* to, std::size_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const std::size_t ready = std::min(bytes, input_end_ - input_begin_);
    if (ready != 0) std::memcpy(place, input_.data() + input_begin_, ready);
    input_begin_ += ready;
    place += ready;
    bytes -= ready;
    if (bytes == 0) break;
    PERDURE_TRY(send_answers());
    if (bytes >= input_.size()) return receive_whole(socket_, place, bytes);
    PERDURE_TRY_ASSIGN(auto got, receive_some(socket_, input_.data(), input_.size()));
    input_begin_ = 0;
    input_end_ = got;
  }
  return Status::success();
}

void PartServer::Session::answer(const Status& status, const std::uint64_t (&values)[2],
                                 std::uint64_t payload_bytes) {
  AnswerFormat answer{};
  answer.code = static_cast<std::int32_t>(status.code());
  answer.message_bytes =
      static_cast<std::uint32_t>(std::min(status.message().size(), message_bytes_max));
  answer.payload_bytes = payload_bytes;
  std::copy_n(values, 2, answer.values);
  const auto* head = reinterpret_cast<const std::byte*>(&answer);
  const auto* text = reinterpret_cast<const std::byte*>(status.message().data());
  answers_.insert(answers_.end(), head, head + sizeof answer);
  answers_.insert(answers_.end(), text, text + answer.message_bytes);
}

Status PartServer::Session::send_answers() {
  if (answers_.empty()) return Status::success();
  iovec piece{answers_.data(), answers_.size()};
  const Status sent = send_whole(socket_, &piece, 1);
  answers_.clear();
  return sent;
}

Status PartServer::Session::send_range(std::uint64_t offset, std::uint64_t bytes) {
  std::array<iovec, pieces_max + 1> pieces{};
  pieces[0] = {answers_.data(), answers_.size()};
  std::size_t count = 1;
  SharedForCalls shared;
  const std::uint64_t block_bytes = service_.part().layout().block_bytes;
  while (bytes != 0) {
    const std::uint64_t run = std::min(bytes, block_bytes - (offset & (block_bytes - 1)));
    PERDURE_TRY_ASSIGN(auto view, service_.part().view(offset, run));
    pieces[count++] = {const_cast<std::byte*>(shared.add(view, run)), run};  // it is only read
    offset += run;
    bytes -= run;
    if (bytes != 0 && count < pieces.size()) continue;
    PERDURE_TRY(send_whole(socket_, pieces.data(), count));
    count = 0;
  }
  answers_.clear();
  return Status::success();
}

// Straight from the part's memory: all blocks are present before the answer says so. What passes
// through is read before.
Status PartServer::Session::serve_read(const RequestFormat& request) {
  auto here = service_.prepare_read(request);
  std::optional<CachePart::Stay> stay(service_.part());
  if (here.ok() && here.value()) here = service_.prepare_read(request);  // cache.P17: it may leave
  Status ready = here.status();
  std::vector<std::byte> passed;
  if (!here.ok() || !here.value()) stay.reset();
  if (ready.ok() && !here.value()) {
    passed.resize(request.bytes);
    ready = service_.part().read(request.offset, passed.data(), request.bytes);
  }
  answer(ready, {0, 0}, ready.ok() ? request.bytes : 0);
  if (!ready.ok() || request.bytes == 0) return Status::success();
  if (passed.empty()) return send_range(request.offset, request.bytes);
  PERDURE_TRY(send_answers());
  iovec piece{passed.data(), passed.size()};
  return send_whole(socket_, &piece, 1);
}

// The pieces come first, then what they hold: both are in `bytes` bytes at `from`, which has the
// alignment of any type.
Status PartServer::Session::write(const RequestFormat& request, const std::byte* from) {
  if (Verb{request.verb} == Verb::write) return service_.write(request, from);
  const auto* runs = reinterpret_cast<const PiecesFormat*>(from);
  return service_.write_pieces(request, {runs, request.value},
                               from + request.value * sizeof(PiecesFormat));
}

// cache.S2: a turn is taken when no answer is left to be sent, and given back before this one is.
Status PartServer::Session::serve_write(const RequestFormat& request) {
  const bool has_pieces = Verb{request.verb} == Verb::write_pieces;
  const std::uint64_t bytes =
      request.bytes + (has_pieces ? request.value * sizeof(PiecesFormat) : 0);
  if (bytes > input_end_ - input_begin_) PERDURE_TRY(send_answers());
  auto buffer = turns_.take();
  const Status received = receive(buffer.get(), bytes);
  const Status done = received.ok() ? write(request, buffer.get()) : received;
  turns_.give(std::move(buffer));
  PERDURE_TRY(received);
  answer(done, {0, 0}, 0);
  return Status::success();
}

// Gathered first, so that nothing of the part is held while the peer is waited for.
Status PartServer::Session::serve_read_pieces(const RequestFormat& request) {
  std::vector<PiecesFormat> runs(request.value);
  PERDURE_TRY(receive(runs.data(), runs.size() * sizeof(PiecesFormat)));
  const auto gathered = std::make_unique_for_overwrite<std::byte[]>(request.bytes);
  const Status done = service_.read_pieces(request, runs, gathered.get());
  answer(done, {0, 0}, done.ok() ? request.bytes : 0);
  if (!done.ok()) return Status::success();
  std::array<iovec, 2> pieces = {
      {{answers_.data(), answers_.size()}, {gathered.get(), request.bytes}}};
  PERDURE_TRY(send_whole(socket_, pieces.data(), pieces.size()));
  answers_.clear();
  return Status::success();
}

Status PartServer::Session::serve_one() {
  RequestFormat request;
  PERDURE_TRY(receive(&request, sizeof request));
  const Status shape = PartService::check_shape(request);
  if (!shape.ok()) {
    answer(shape, {0, 0}, 0);
    PERDURE_TRY(send_answers());
    return shape;
  }
  const Verb verb{request.verb};
  if (verb == Verb::read) return serve_read(request);
  if (verb == Verb::read_pieces) return serve_read_pieces(request);
  if (verb == Verb::write || verb == Verb::write_pieces) {
    PERDURE_TRY(serve_write(request));
  } else {
    std::uint64_t values[2] = {0, 0};
    const Status done = service_.perform(request, values);
    if (done.ok() && Verb{request.verb} == Verb::try_lock && values[0] != 0) {
      lock_owner_ = request.value;
    } else if (done.ok() && Verb{request.verb} == Verb::unlock) {
      lock_owner_ = 0;
    }
    answer(done, values, 0);
  }
  return answers_.size() < answers_bytes_max ? Status::success() : send_answers();
}

Status PartServer::Session::serve() {
  while (true) PERDURE_TRY(serve_one());
}

PartServer::PartServer(CachePart& part, const ServiceToken& token, FileHandle listener,
                       FileHandle stop, ServerAddress address)
    : service_(part),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      address_(std::move(address)),
      reception_(token, text_of(address_)) {}

Result<std::unique_ptr<PartServer>> PartServer::start(CachePart& part, const BackingFile& backing,
                                                      const ServiceToken& token,
                                                      const std::string& host) {
  part.set_backing(&backing);
  ServerAddress address;
  PERDURE_TRY_ASSIGN(auto listener, listen_at(host.empty() ? own_host() : host, address));
  if (text_of(address).size() >= address_text_bytes) {
    return Status(Code::invalid_argument, "the address ", text_of(address), " is longer than ",
                  address_text_bytes - 1, " bytes; use a number in place of the name");
  }
  FileHandle stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop.fd() < 0) return errno_status("make an eventfd", errno);
  std::unique_ptr<PartServer> server(
      new PartServer(part, token, std::move(listener), std::move(stop), std::move(address)));
  const AllSignalsBlocked blocked;
  try {
    server->acceptor_ = std::thread(&PartServer::accept_until_stopped, server.get());
  } catch (const std::system_error& error) {
    return errno_status("make a thread that serves other nodes", error.code().value());
  }
  return server;
}

PartServer::~PartServer() {
  const std::uint64_t one = 1;
  // An eventfd takes one more unless 2^64 - 2 were written to it.
  if (stop_.fd() >= 0) (void)!::write(stop_.fd(), &one, sizeof one);
  if (acceptor_.joinable()) acceptor_.join();
  for (const auto& session : sessions_) session->interrupt();  // all, before any is waited for
}

bool PartServer::wait_for_clients(std::uint32_t wait_ms) const {
  const std::uint64_t until = monotonic_ns() + std::uint64_t{wait_ms} * 1'000'000;
  while (clients_ != 0 && monotonic_ns() < until) ::usleep(1000);
  return clients_ == 0;
}

void PartServer::accept_until_stopped() {
  std::vector<pollfd> wanted;
  while (true) {
    // poll passes over a descriptor of -1.
    wanted = {{stop_.fd(), POLLIN, 0}, {reception_.has_room() ? listener_.fd() : -1, POLLIN, 0}};
    reception_.add_to(wanted);
    if (::poll(wanted.data(), wanted.size(), reception_.poll_ms()) < 0 && errno != EINTR) return;
    if (wanted[0].revents != 0) return;
    for (FileHandle& socket : reception_.admit()) begin_session(std::move(socket));
    if (wanted[1].revents != 0) accept_while_room();
    forget_ended_sessions();
  }
}

void PartServer::accept_while_room() {
  while (reception_.has_room()) {
    auto socket = accept_waiting(listener_);
    if (!socket.ok()) {
      // Out of descriptors, most likely: the connection still waits, and poll would not.
      pollfd stop{stop_.fd(), POLLIN, 0};
      (void)::poll(&stop, 1, rest_ms);
      return;
    }
    if (socket.value().fd() < 0) return;
    reception_.receive(socket.take());
  }
}

// A connection for which there is no thread is closed; the client says what that may mean.
void PartServer::begin_session(FileHandle socket) {
  clients_.fetch_add(1);
  try {
    sessions_.push_back(std::make_unique<Session>(std::move(socket), service_, turns_, clients_));
  } catch (const std::system_error&) {
    clients_.fetch_sub(1);
  }
}

void PartServer::forget_ended_sessions() {
  std::erase_if(sessions_, [](const auto& session) { return session->ended(); });
}

}  // namespace perdure
