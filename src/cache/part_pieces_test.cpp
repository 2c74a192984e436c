// SPDX-License-Identifier: BSD-3-Clause
//
// Accesses in pieces: of a part, of this node's and of others', against a plain array of bytes; and
// requests for pieces that can't be right.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <thread>

#include "cache/part_access.hpp"
#include "cache/testing/served_parts.hpp"

namespace perdure {
namespace {

std::byte* bytes_at(Bytes& bytes, std::uint64_t at) {
  return reinterpret_cast<std::byte*>(bytes.data()) + at;
}

// Pieces of a file, drawn: their offsets and lengths, which do not overlap and do not decrease.
std::vector<std::pair<std::uint64_t, std::uint64_t>> draw_pieces(std::mt19937_64& random) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
  std::uint64_t offset = random() % 50000;
  const bool regular = random() % 2 == 0;
  const std::uint64_t unit = 1U << random() % 5;
  if (random() % 2 == 0) offset = offset / 16 * 16;
  const std::uint64_t gap = random() % 5 * unit;
  for (std::uint64_t left = 1 + random() % 600; left != 0 && offset < 90000; --left) {
    const std::uint64_t bytes = regular ? unit : 1 + random() % (random() % 20 == 0 ? 6000 : 20);
    pieces.emplace_back(offset, bytes);
    offset += bytes + (regular ? gap : random() % 200);
  }
  return pieces;
}

// One access to all of them, as CachedFile::Pieces makes it, by the clients of all nodes or, of
// node 0, by its own part.
class Access {
 public:
  explicit Access(Served& served) : served_(served), own_(*served.parts[0]) {
    lists_.resize(served.layout.nodes);
    outcomes_.resize(served.layout.nodes);
  }
  void add(std::uint64_t offset, std::byte* memory, std::uint64_t bytes) {
    served_.for_each_piece(offset, bytes, [&](PartClient&, auto at, auto done, auto run) {
      lists_[place_of(served_.layout, at).node].add(at, memory + done, run);
    });
  }
  PartAccess& part(std::size_t node, bool own) {
    if (own && node == 0) return own_;
    return *served_.clients[node];
  }
  void read(bool own) {
    if (own) must(served_.clients[0]->drain());
    for (std::size_t node = 0; node < lists_.size(); ++node) {
      if (lists_[node].empty()) continue;
      must(part(node, own).begin_read(lists_[node], outcomes_[node]));
    }
    await(own);
  }
  void write(Acknowledge when, bool own) {
    if (own) must(served_.clients[0]->drain());
    for (std::size_t node = 0; node < lists_.size(); ++node) {
      if (lists_[node].empty()) continue;
      must(part(node, own).begin_write(lists_[node], when, outcomes_[node]));
    }
    await(own);
  }

 private:
  void await(bool own) {
    for (std::size_t node = 0; node < lists_.size(); ++node) {
      must(part(node, own).await(outcomes_[node]));
    }
  }

  Served& served_;
  OwnPart own_;
  std::vector<PieceList> lists_;
  std::vector<Outcome> outcomes_;
};

void serve_random_pieces(Served& served, std::mt19937_64& random) {
  for (int step = 0; step < 60; ++step) {
    const auto pieces = draw_pieces(random);
    const bool own = random() % 2 == 0;
    const std::uint64_t apart = random() % 2;  // in memory
    const auto each = [&](const auto& visit) {
      std::uint64_t at = 0;
      for (const auto& [offset, bytes] : pieces) {
        visit(offset, at, bytes);
        at += bytes + apart;
      }
    };
    Bytes memory = random_bytes(400000, random);
    Access access(served);
    each(
        [&](auto offset, auto at, auto bytes) { access.add(offset, bytes_at(memory, at), bytes); });
    if (random() % 2 == 0) {
      access.write(static_cast<Acknowledge>(random() % 3), own);
      each([&](auto offset, auto at, auto bytes) {
        if (served.content.size() < offset + bytes) served.content.resize(offset + bytes);
        std::memcpy(&served.content[offset], &memory[at], bytes);
      });
    } else {
      const Bytes before = memory;
      access.read(own);
      Bytes expected = before;
      each([&](auto offset, auto at, auto bytes) {
        for (std::uint64_t i = 0; i < bytes; ++i) {
          expected[at + i] = offset + i < served.content.size() ? served.content[offset + i] : 0;
        }
      });
      ASSERT_EQ(memory, expected);
    }
  }
  served.write_back();
  EXPECT_EQ(read_file(served.directory / "file"), served.content);
}

TEST(PartPieces, random_accesses_over_all_layouts_lose_no_byte) {
  std::mt19937_64 random(test_seed());
  for (const std::uint32_t nodes : {1U, 2U, 3U}) {
    for (const LayoutKind kind : {LayoutKind::cyclic, LayoutKind::parts}) {
      Served served(nodes, kind, random_bytes(100001, random));
      serve_random_pieces(served, random);
      Served small(nodes, kind, random_bytes(100001, random), 128);
      serve_random_pieces(small, random);
      Served full(nodes, kind, random_bytes(100001, random), 4096, random());
      serve_random_pieces(full, random);
    }
  }
}

// A word of each grain or more is marked as it is alone: no other grain is written back.
TEST(PartPieces, grains_between_pieces_stay_clean) {
  Served served(1, LayoutKind::cyclic, Bytes(200000, 1), 65536);
  const PiecesFormat run{0, 2048, 8, 90};  // grains of 512 bytes
  const Bytes fresh(720, 2);
  must(served.parts[0]->write_pieces(run, reinterpret_cast<const std::byte*>(fresh.data()),
                                     Acknowledge::sync));
  EXPECT_EQ(must(served.clients[0]->write_back(0, true)).bytes, 90U * 512);
}

TEST(PartPieces, absent_blocks_are_read_from_the_file_and_beyond_its_end_are_zeros) {
  const Served served(2, LayoutKind::cyclic, counted(10000));
  Bytes got(4 * 2000, 9);
  PieceList list;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t offset = i * 8 + i * 8 / 4096 * 4096;  // of node 0
    list.add(offset, bytes_at(got, i * 4), 4);
  }
  Outcome outcome;
  must(served.clients[0]->begin_read(list, outcome));
  must(served.clients[0]->await(outcome));
  for (std::uint64_t i = 0; i < got.size(); ++i) {
    const std::uint64_t offset = i / 4 * 8 + i / 4 * 8 / 4096 * 4096 + i % 4;
    EXPECT_EQ(got[i], offset < 10000 ? served.content[offset] : 0) << i;
  }
}

TEST(PartPieces, several_threads_use_one_client_for_them) {
  Served served(1, LayoutKind::cyclic, Bytes(100000, 1));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 100; ++i) {
        Bytes mine(400, static_cast<unsigned char>(t * 50 + i));
        PieceList list;
        for (std::uint64_t piece = 0; piece < 100; ++piece) {
          list.add(t * 20000 + i * 100 + piece * 8, bytes_at(mine, piece * 4), 4);
        }
        Outcome written;
        must(served.clients[0]->begin_write(list, Acknowledge::async, written));
        must(served.clients[0]->await(written));
        const Bytes expected = mine;
        std::ranges::fill(mine, 0);
        Outcome read;
        must(served.clients[0]->begin_read(list, read));
        must(served.clients[0]->await(read));
        EXPECT_EQ(mine, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PartPieces, more_messages_than_socket_buffers_hold_neither_block_nor_reorder) {
  Served served(1, LayoutKind::cyclic, Bytes(4U << 20U, 1), 65536);
  Bytes written(800000);
  Bytes got(800000);
  PieceList to_write;
  PieceList to_read;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    to_write.add(i * 8, bytes_at(written, i * 4), 4);
    to_read.add(i * 8, bytes_at(got, i * 4), 4);
  }
  Outcome outcome;
  for (unsigned round = 0; round < 20; ++round) {
    std::ranges::fill(written, static_cast<unsigned char>(round));
    must(served.clients[0]->begin_write(to_write, Acknowledge::sync, outcome));
    must(served.clients[0]->begin_read(to_read, outcome));
  }
  must(served.clients[0]->await(outcome));
  EXPECT_EQ(got, Bytes(800000, 19));
}

TEST(PartPieces, the_error_of_pieces_is_told_to_whoever_began_them) {
  const Served served(2, LayoutKind::cyclic, counted(100000));
  Bytes memory(8, 5);
  PieceList list;
  list.add(0, bytes_at(memory, 0), 4);
  list.add(4096, bytes_at(memory, 4), 4);  // of node 1
  Outcome outcome;
  must(served.clients[0]->begin_write(list, Acknowledge::sync, outcome));
  const Status refused = served.clients[0]->await(outcome);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_TRUE(says(refused, "kept by node 1, not by node 0")) << refused.message();
  EXPECT_EQ(served.read(0, 4), Bytes(served.content.begin(), served.content.begin() + 4));
  Outcome later;
  must(served.clients[0]->begin_write(list, Acknowledge::async, later));
  must(served.clients[0]->await(later));
  EXPECT_EQ(served.clients[0]->drain().code(), Code::invalid_argument);
}

TEST(PartPieces, a_server_that_stops_is_an_error_of_all_that_wait_for_it) {
  Served served(1, LayoutKind::cyclic, counted(100));
  Bytes memory(100);
  PieceList list;
  list.add(0, bytes_at(memory, 0), 100);
  served.servers[0].reset();
  Outcome outcome;
  Status last = served.clients[0]->begin_read(list, outcome);
  const Status awaited = served.clients[0]->await(outcome);
  if (last.ok()) last = awaited;
  EXPECT_EQ(last.code(), Code::io_error);
  EXPECT_EQ(outcome.awaited, 0U);
}

// Lists that name nothing, more than there is room for, other nodes' bytes, or other sums.
TEST(HostileService, pieces_that_can_not_be_right_are_refused_and_change_nothing) {
  const Served served(2, LayoutKind::cyclic, counted(100000));
  const auto verb = static_cast<std::uint32_t>(Verb::write_pieces);
  for (const std::uint64_t runs : {std::uint64_t{0}, std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
    Raw raw(*served.servers[0], token);
    const RequestFormat request{verb, 1, 0, 8, runs};
    raw.put(&request, sizeof request);
    EXPECT_EQ(raw.answer().value().code, static_cast<int>(Code::invalid_argument));
    EXPECT_FALSE(raw.answer());  // the connection has ended
  }
  Raw raw(*served.servers[0], token);
  for (const PiecesFormat& run :
       {PiecesFormat{0, 8, 4, 3}, PiecesFormat{0, 8, 0, 2}, PiecesFormat{0, 8, 4, 0},
        PiecesFormat{0, 3, 4, 2}, PiecesFormat{~0ULL, 8, 4, 2}, PiecesFormat{0, ~0ULL, 4, 2},
        PiecesFormat{0, 8, ~0U, ~0U}, PiecesFormat{4096, 8, 4, 2}, PiecesFormat{4090, 8, 8, 1},
        PiecesFormat{0, 4096, 4, 2}, PiecesFormat{4092, 8, 4, 2}}) {
    const RequestFormat request{verb, 1, 0, 8, 1};
    raw.put(&request, sizeof request);
    raw.put(&run, sizeof run);
    raw.put("abcdefgh", 8);
    EXPECT_EQ(raw.answer().value().code, static_cast<int>(Code::invalid_argument)) << run.offset;
  }
  const RequestFormat odd{verb, 77, 0, 8, 1};
  const PiecesFormat good{0, 8, 4, 2};
  raw.put(&odd, sizeof odd);
  raw.put(&good, sizeof good);
  raw.put("abcdefgh", 8);
  EXPECT_EQ(raw.answer().value().code, static_cast<int>(Code::invalid_argument));
  EXPECT_EQ(served.read(0, 100000), served.content);
}

TEST(HostileService, a_peer_that_leaves_amid_its_pieces_changes_nothing) {
  const Served served(1, LayoutKind::cyclic, counted(100000));
  const RequestFormat request{static_cast<std::uint32_t>(Verb::write_pieces), 1, 0, 8, 1};
  const PiecesFormat run{0, 8, 4, 2};
  Bytes all(sizeof request + sizeof run + 8, 'x');
  std::memcpy(all.data(), &request, sizeof request);
  std::memcpy(all.data() + sizeof request, &run, sizeof run);
  for (std::size_t bytes = 0; bytes < all.size(); ++bytes) {
    Raw raw(*served.servers[0], token);
    raw.put(all.data(), bytes);
  }
  EXPECT_EQ(served.read(0, 100000), served.content);
}

}  // namespace
}  // namespace perdure
