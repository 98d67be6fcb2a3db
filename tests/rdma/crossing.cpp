// What a client of another machine may do with "memory", "cells", "noted" and the echo of `serve`.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdma/peer.hpp"
#include "support/bytes/pattern.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/message.hpp"
#include "ucx/pipe_stream.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t pipe_size = std::size_t{3} << 20U;

remote_region open_memory(client& server) {
  return open_by(server, "rma", "memory", access::read_write);
}

/// Pieces of many sizes that do not touch.
template <class Piece, class Byte>
std::vector<Piece> pieces_of(std::span<Byte> bytes, std::uint64_t from) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0, size = 1; at + size <= bytes.size(); at += size + 7, size = size * 3 + 1)
    pieces.push_back({from + at, bytes.subspan(at, size)});
  return pieces;
}

}  // namespace

void check_batches(const std::string& url) {
  client server = connect(url);
  remote_region region = open_memory(server);
  const std::vector<std::byte> from = pattern(256 << 10U, 3);
  region.write_batch(pieces_of<write_piece>(std::span(from), half));
  region.flush();
  std::vector<std::byte> into(from.size());
  const std::vector<read_piece> wanted = pieces_of<read_piece>(std::span(into), half);
  region.read_batch(wanted);
  for (const read_piece& each : wanted)
    require(holds_pattern(each.into, 3, each.offset - half), "a piece of a batch");
}

/// The second write of a place is the one that stays, and a message tells of both.
void check_fences(const std::string& url) {
  client server = connect(url);
  remote_region region = open_memory(server);
  remote_region by_message = open_by(server, "message", "memory", access::read_write);
  endpoint connection = server.connection();
  std::vector<std::byte> into(100'000);
  for (std::uint64_t round = 1; round <= 8; ++round) {
    const std::vector<std::byte> first = pattern(into.size(), 100 + round);
    const std::vector<std::byte> second = pattern(into.size(), 200 + round);
    request one = region.start_write_at(half, first);
    connection.fence();
    request two = (round % 2 == 0 ? region : by_message).start_write_at(half, second);
    connection.fence();
    request read = (round % 3 == 0 ? region : by_message).start_read_at(half, into);
    for (request* each : {&one, &two, &read}) each->wait();
    require(holds_pattern(into, 200 + round), "what is behind a fence comes last");
  }
}

void check_atomics(const std::string& url) {
  client server = connect(url);
  remote_region cells = server.open("cells", access::read_write);
  remote_atomic<std::uint64_t> sum(cells, 0);
  const std::uint64_t before = sum.load();
  for (std::uint64_t i = 0; i < 20; ++i)
    require(sum.fetch_add(3) == before + 3 * i, "what was there is told");
  std::uint64_t expected = before;
  require(!sum.compare_exchange(expected, 1) && expected == before + 60, "another value is there");
  require(sum.compare_exchange(expected, before), "the value is exchanged");
  remote_atomic<std::uint32_t> narrow(cells, 8);
  narrow.store(7);
  require(narrow.exchange(9) == 7 && narrow.load() == 9, "32 bits are exchanged");
}

/// The owner's handler puts the number of a notification into the cells.
void check_notifications(const std::string& url) {
  client server = connect(url);
  remote_region cells = server.open("cells");
  remote_region told = server.open("descriptor of noted");
  std::vector<std::byte> wire(told.size());
  told.read_at(0, wire);
  remote_region noted(server.connection(), remote_descriptor::decode(wire),
                      {.transfer_method = transfer_method::rma});
  const std::vector<std::byte> from = pattern(noted.size(), 6);
  noted.write_at(0, from);
  const auto value =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  noted.notify(value);
  remote_atomic<std::uint64_t> seen(cells, 16);
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (seen.load() != value) require(std::chrono::steady_clock::now() < end, "the owner is told");
  require(remote_atomic<std::uint64_t>(cells, 24).load() == 1, "the bytes were there before");
}

/// Of all sizes: there and back, and those of the owner's in their order.
void check_messages(const std::string& url) {
  client server = connect(url);
  endpoint connection = server.connection();
  for (const std::size_t size : message_sizes) {
    const std::vector<std::byte> there = pattern(size, size);
    std::vector<std::byte> back(size);
    request sent = connection.start_send(100 + size, there);
    require(connection.receive(100 + size, back).length == size, "the length of what comes back");
    sent.wait();
    require(back == there, "the bytes of what comes back: " + std::to_string(size));
  }
  connection.send(active_message{ask_for_messages}, std::span<const std::byte>());
  for (std::size_t i = 0; i < message_sizes.size(); ++i) {
    const auto end = std::chrono::steady_clock::now() + 100s;
    std::optional<message> came;
    while (!(came = server.worker().take(tag_match::any()))) {
      require(std::chrono::steady_clock::now() < end, "message " + std::to_string(i) + " comes");
      server.worker().progress();
    }
    require(came->tag() == i, "messages keep their order");
    require(came->length() == message_sizes[i], "the length of message " + std::to_string(i));
    std::vector<std::byte> into(came->data().begin(), came->data().end());
    if (!came->has_payload()) {
      into.resize(message_sizes[i]);
      came->receive(into);
    }
    require(holds_pattern(into, i), "the bytes of message " + std::to_string(i));
  }
}

/// A context over verbs, and one over TCP, of one process at one server.
void check_contexts(const std::string& url) {
  client_options tcp;
  tcp.context.transports = {"tcp"};
  client other = connect(url, tcp);
  client server = connect(url);
  require(server.connection().report().native_rma, "one goes over verbs");
  require(!other.connection().report().native_rma, "one goes over TCP");
  remote_region fast = open_memory(server);
  remote_region slow = other.open("memory", access::read_write);
  std::vector<std::byte> into(100'000);
  for (std::uint64_t round = 1; round <= 4; ++round) {
    remote_region& writes = round % 2 == 0 ? fast : slow;
    remote_region& reads = round % 2 == 0 ? slow : fast;
    writes.write_at(half, pattern(into.size(), round));
    writes.flush();
    reads.read_at(half, into);
    require(holds_pattern(into, round), "what one has flushed is read by the other");
  }
  other.close();
  fast.read_at(half, into);
}

namespace {

/// Returns what the device has counted.
std::int64_t counter(const char* name) {
  std::int64_t value = 0;
  std::ifstream(std::string("/sys/class/infiniband/rxe0/ports/1/hw_counters/") + name) >> value;
  return value;
}

}  // namespace

/// The reader's hardware reads what is written, so this side sends little.
void write_pipe(const std::string& url) {
  opipestream out(url + "/pipe", pipe_options{.heartbeat_timeout = 30s, .connect_timeout = 60s});
  const std::string text = pattern_text(pipe_size, 5);
  const std::int64_t sends = counter("rdma_sends");
  const std::int64_t packets = counter("sent_pkts");
  out << text;
  out.close();
  require(out.good(), "the pipe is written: " + out.error_message());
  const std::int64_t spent = counter("rdma_sends") - sends;
  std::cout << "measured: a pipe of " << pipe_size << " bytes: " << spent << " sends, "
            << counter("sent_pkts") - packets << " packets" << std::endl;
  require(spent < 100, "the payload is read by the other side");
}

void read_pipe(const std::string& url) {
  ipipestream in(url + "/pipe", pipe_options{.heartbeat_timeout = 30s, .connect_timeout = 60s});
  std::string text(pipe_size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  require(in.good(), "the pipe is read: " + in.error_message());
  require(text == pattern_text(pipe_size, 5), "the bytes of the pipe");
  require(in.get() == std::char_traits<char>::eof() && in.eof(), "the pipe ends");
}

}  // namespace ucx::test
