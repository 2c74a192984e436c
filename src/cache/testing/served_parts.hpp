// SPDX-License-Identifier: BSD-3-Clause
//
// For tests only: parts of a file with a server and a client each, and connections that speak the
// protocol by hand.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "cache/handshake.hpp"
#include "cache/part_client.hpp"
#include "cache/part_server.hpp"
#include "cache/testing/small_device.hpp"

namespace perdure {

constexpr ServiceToken token{{1, 2, 3, 5, 8, 13, 21, 34}};

// A file over some nodes, all of them here, and a server for each; `room`: half of the blocks that
// are asked for have none.
class Served {
 public:
  Served(std::uint32_t nodes, LayoutKind kind, const Bytes& bytes, std::uint64_t block_bytes = 4096,
         std::optional<std::uint64_t> room = std::nullopt)
      : content(bytes) {
    write_file(directory / "file", bytes);
    backing = std::make_unique<BackingFile>(
        must(BackingFile::open(directory / "file", BackingFile::Access::read_write)));
    layout = make_layout(kind, nodes, block_bytes, bytes.size());
    for (std::uint32_t node = 0; node < nodes; ++node) {
      parts.push_back(new_part(directory / ("part" + std::to_string(node)), *backing, node, layout,
                               bytes.size(), {.blocks = (16U << 20U) / block_bytes}));
      if (room) {
        const std::string file = directory / ("part" + std::to_string(node));
        parts.back() = attach_small_part(file, *backing, random_room(*room + node));
      }
      servers.push_back(must(PartServer::start(*parts.back(), *backing, token, "127.0.0.1")));
      clients.push_back(connect(node));
    }
  }
  std::unique_ptr<PartClient> connect(std::size_t node = 0) const {
    return must(PartClient::connect(servers[node]->address(), token));
  }
  // Each piece of a range to the client of the node that keeps it.
  template <typename Function>
  void for_each_piece(std::uint64_t offset, std::uint64_t bytes, const Function& function) const {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t run = run_on_node(layout, offset + done, bytes - done);
      function(*clients[place_of(layout, offset + done).node], offset + done, done, run);
      done += run;
    }
  }
  Bytes read(std::uint64_t offset, std::uint64_t bytes) const {
    Bytes got(bytes);
    for_each_piece(offset, bytes, [&](PartClient& client, auto at, auto done, auto run) {
      must(client.read(at, got.data() + done, run));
    });
    return got;
  }
  void write(std::uint64_t offset, const Bytes& from, Acknowledge when) {
    for_each_piece(offset, from.size(), [&](PartClient& client, auto at, auto done, auto run) {
      must(client.write(at, from.data() + done, run, when));
    });
    if (content.size() < offset + from.size()) content.resize(offset + from.size());
    std::copy(from.begin(), from.end(), content.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  // As a close does: all parts know the size, then write back.
  void write_back() {
    for (const auto& client : clients) {
      must(client->drain());
      must(client->grow_size(content.size()));
      (void)must(client->write_back(0, true));
    }
  }

  TemporaryDirectory directory;
  Bytes content;
  std::unique_ptr<BackingFile> backing;
  Layout layout;
  std::vector<std::unique_ptr<CachePart>> parts;
  std::vector<std::unique_ptr<PartServer>> servers;
  std::vector<std::unique_ptr<PartClient>> clients;
};

inline Bytes counted(std::size_t count, unsigned first = 0) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(first + i * 7);
  return bytes;
}

// A connection that speaks the protocol by hand.
class Raw {
 public:
  // Says nothing.
  explicit Raw(const ServerAddress& address) : socket_(must(connect_to(address, 1000))) {}
  // Is admitted.
  Raw(const PartServer& server, const ServiceToken& known) : Raw(server.address()) {
    const auto challenged = challenge();
    if (!challenged) return;
    const auto greeting = must(greeting_for(known, text_of(server.address()), *challenged));
    put(&greeting, sizeof greeting);
    EXPECT_TRUE(get<WelcomeFormat>());
  }
  void put(const void* from, std::size_t bytes) {
    iovec piece{const_cast<void*>(from), bytes};
    must(send_whole(socket_, &piece, 1));
  }
  // As far as the other end still listens.
  void try_to_put(const void* from, std::size_t bytes) {
    iovec piece{const_cast<void*>(from), bytes};
    (void)send_whole(socket_, &piece, 1);
  }
  // Empty: the connection was closed.
  template <typename Format>
  std::optional<Format> get() {
    Format got;
    const Status received =
        receive_by(socket_, &got, sizeof got, monotonic_ns() + std::uint64_t{30'000'000'000});
    EXPECT_NE(received.code(), Code::busy);
    if (!received.ok()) return std::nullopt;
    return got;
  }
  std::optional<ChallengeFormat> challenge() { return get<ChallengeFormat>(); }
  std::optional<AnswerFormat> answer() {
    const auto got = get<AnswerFormat>();
    if (!got) return std::nullopt;
    Bytes rest(got->message_bytes + got->payload_bytes);
    must(receive_whole(socket_, rest.data(), rest.size()));
    return got;
  }

 private:
  FileHandle socket_;
};

}  // namespace perdure
