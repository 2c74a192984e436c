// SPDX-License-Identifier: BSD-3-Clause
//
// Part server: serves a node's part to processes of other nodes over TCP, while the processes of
// the node compute. No MPI, so any thread level will do; asleep in the kernel unless asked.
//
// One thread accepts, and each connection has a thread of its own that serves its requests in
// order. So a connection whose block comes from a slow file system, or that writes back for
// minutes, keeps nobody else waiting, and a peer that is slow to receive neither. The price is a
// sleeping thread for each process of the other nodes: some ten KiB of memory each; thousands of
// them are within what Linux and its usual limits allow, and a fixed number of workers would need
// a queue for every call here that can block. Threads that ran at the same time would exhaust the
// journal slots of the part, and each needs a buffer for what is written to it: at most
// `writers_max` write at once, the others wait for their turn, in the kernel.
//
// Invariants
//   cache.S1  A connection has a thread only when its other end has shown that it knows the token
//       (handshake.hpp); until then the accepting thread keeps it, without waiting for it, among
//       a bounded number of others and for ten seconds at most (reception.hpp).
//   cache.S2  Answers have the order of the requests. None is waited for with a turn in hand.
//   cache.S3  No request can touch what is not the part's (part_service.hpp).
//   cache.S4  All signals are blocked in these threads: they belong to the program.
//
// Threads: start and destruction by one thread. Failure: a connection that breaks is closed; its
// requests so far are done. The destructor waits for calls of CachePart that are under way, not for
// peers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/status.hpp"
#include "cache/cache_part.hpp"
#include "cache/part_service.hpp"
#include "cache/protocol_format.hpp"
#include "cache/reception.hpp"
#include "cache/tcp.hpp"

namespace perdure {

// Buffers for what is received; whoever has one has a turn to write.
class WriteTurns {
 public:
  static constexpr std::size_t writers_max = 64;

  std::unique_ptr<std::byte[]> take();
  void give(std::unique_ptr<std::byte[]> buffer);

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<std::unique_ptr<std::byte[]>> idle_;
  std::size_t taken_ = 0;
};

class PartServer {
 public:
  // `host` is the address to advertise and bind; empty: own_host(). The part and its backing file
  // outlive the server.
  static Result<std::unique_ptr<PartServer>> start(CachePart& part, const BackingFile& backing,
                                                   const ServiceToken& token,
                                                   const std::string& host);
  // Returns when its threads have ended and its sockets are closed.
  ~PartServer();
  PartServer(const PartServer&) = delete;
  PartServer& operator=(const PartServer&) = delete;

  ServerAddress address() const { return address_; }
  // Whether nobody is connected any more, which is waited for.
  bool wait_for_clients(std::uint32_t wait_ms) const;

 private:
  class Session;

  PartServer(CachePart& part, const ServiceToken& token, FileHandle listener, FileHandle stop,
             ServerAddress address);
  void accept_until_stopped();
  void accept_while_room();
  void begin_session(FileHandle socket);
  void forget_ended_sessions();

  PartService service_;
  FileHandle listener_;
  FileHandle stop_;  // an eventfd, readable when it is time to end
  ServerAddress address_;
  Reception reception_;  // the accepting thread's
  WriteTurns turns_;
  std::atomic<std::uint32_t> clients_{0};
  std::list<std::unique_ptr<Session>> sessions_;  // the accepting thread's while it runs
  std::thread acceptor_;
};

}  // namespace perdure
