// SPDX-License-Identifier: BSD-3-Clause
//
// Part client: reads and writes the part of another node through its server.
//
// One connection; the server answers in order. So what this client wrote, acknowledged or not, is
// there for its own next read. Requests are pipelined: `outstanding_` are sent and not answered.
//
// Invariants
//   cache.T1  At most `outstanding_max` requests, of `outstanding_bytes_max` bytes, are not
//       answered.
//   cache.T2  Whoever waits to send receives answers meanwhile. So client and server are never both
//       in a send that waits for the other.
//   cache.T3  After the connection broke, every call says why it did.
//   cache.T4  Nothing is asked of a server, and nothing sent to it, that has not shown that it
//       knows the job's token (handshake.hpp).
//
// Threads: any; one call at a time, the others wait for it. Failure: Code::io_error names the
// server; asynchronous writes that were not answered may or may not have been done.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cache/part_access.hpp"
#include "cache/part_server.hpp"
#include "cache/protocol_format.hpp"
#include "cache/tcp.hpp"

namespace perdure {

class PartClient final : public PartAccess {
 public:
  static Result<std::unique_ptr<PartClient>> connect(const ServerAddress& address,
                                                     const ServiceToken& token);
  ~PartClient() override;  // after a drain(), whose error nobody hears

  // As those of CachePart. An async write returns when the kernel has its bytes, and its error
  // comes with the next drain(); others return when the server has done them.
  Status read(std::uint64_t offset, void* to, std::uint64_t bytes) override;
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes,
               Acknowledge when) override;
  Status begin_read(const PieceList& pieces, Outcome& outcome) override;
  Status begin_write(const PieceList& pieces, Acknowledge when, Outcome& outcome) override;
  Status await(Outcome& outcome) override;
  // Waits until all async writes are done: the first error of those since the last drain.
  Status drain();
  // drain(), and the connection ends: the server waits for this one no more.
  Status finish();

  Result<std::uint64_t> size() override { return ask_for_value(Verb::size); }
  Status grow_size(std::uint64_t bytes) override { return ask(Verb::grow_size, bytes).status; }
  Status set_size(std::uint64_t bytes) override { return ask(Verb::set_size, bytes).status; }
  Result<WriteBackTally> write_back(std::uint64_t turn, bool sync);
  Status persist() { return ask(Verb::persist).status; }
  Result<std::uint64_t> set_base_version(std::uint64_t version, std::uint64_t file_bytes) override {
    return ask_for_value(Verb::set_base_version, version, 0, file_bytes);
  }

  Result<int> take_pointer() override;
  Status give_pointer(int slot) override { return ask(Verb::give_pointer, 0, slot).status; }
  Result<std::uint64_t> add_to_pointer(int slot, std::int64_t add) override {
    return ask_for_value(Verb::add_to_pointer, static_cast<std::uint64_t>(add), slot);
  }
  Status store_pointer(int slot, std::uint64_t value) override {
    return ask(Verb::store_pointer, value, slot).status;
  }
  Result<std::uint64_t> load_pointer(int slot) override {
    return ask_for_value(Verb::load_pointer, 0, slot);
  }
  Result<bool> try_lock(std::uint64_t owner) override;
  Status unlock(std::uint64_t owner) override { return ask(Verb::unlock, owner).status; }
  void give_way() const override { ::usleep(20); }

 private:
  struct Outstanding {
    std::uint64_t bytes;  // of its payload, either way
    bool is_read;
    Outcome* outcome;
    std::vector<MemoryPiece> to;  // of a read
  };

  PartClient(FileHandle socket, std::string name) : socket_(std::move(socket)), name_(name) {}
  static Result<std::unique_ptr<PartClient>> try_to_connect(const ServerAddress& address,
                                                            const ServiceToken& token);
  Status greet(const ServiceToken& token);
  Status exchange_proofs(const ServiceToken& token);
  Outcome ask(Verb verb, std::uint64_t value = 0, int option = 0, std::uint64_t offset = 0);
  Result<std::uint64_t> ask_for_value(Verb verb, std::uint64_t value = 0, int option = 0,
                                      std::uint64_t offset = 0);

  // Called with the mutex held; their failure is the connection's.
  Status submit(const RequestFormat& request, std::span<iovec> rest, Outstanding pending);
  Status send(const RequestFormat& request, std::span<iovec> rest);
  Status receive_answer();
  Status receive_payload(const std::vector<MemoryPiece>& to, std::uint64_t bytes);
  Status receive_all();
  Status broken(const Status& why);
  Status drain_locked();

  std::mutex mutex_;
  FileHandle socket_;
  std::string name_;
  std::deque<Outstanding> outstanding_;
  std::uint64_t outstanding_bytes_ = 0;
  std::vector<std::byte> together_;  // the payload of memory that is not in one piece
  Outcome async_;                    // the first failure of an async write
  Status broken_;                    // cache.T3
};

}  // namespace perdure
