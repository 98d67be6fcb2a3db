// How frames get from one side of a connection to the other: in order, at the link's speed.
#include <algorithm>
#include <cstring>
#include <utility>

#include "support/fake_ucp/fake_fabric.hpp"

namespace ucx::test::sim {
namespace {

wire& wire_of(const connection_ptr& link, int index, bool hardware) {
  side& from = side_of(link, index);
  return hardware ? from.hardware : from.software;
}

constexpr std::size_t frame_overhead = 64;

// Memory that one host shares is reached without a process, or a connection, on its other side.
bool needs_nobody(const connection_ptr& link, bool hardware) {
  return hardware && !link->detects_failure;
}

}  // namespace

nanoseconds fabric::duration(std::size_t bytes_sent) const {
  return nanoseconds(static_cast<nanoseconds::rep>(
      static_cast<double>(bytes_sent + frame_overhead) * 1e9 / link.bytes_per_second));
}

std::vector<std::uint64_t> fabric::sums(const std::byte* bytes_sent, std::size_t size) const {
  std::vector<std::uint64_t> result;
  if (is_on_device(bytes_sent)) return result;
  for (std::size_t offset = 0; offset < size; offset += link.segment) {
    result.push_back(checksum(bytes_sent + offset, std::min(link.segment, size - offset)));
  }
  return result;
}

bool fabric::load(std::vector<std::byte>& into, const std::byte* from, std::size_t size,
                  bool hardware) const {
  if (is_on_device(from)) {
    into.resize(size);
    return devices->read(from, into, hardware);
  }
  into.assign(from, from + size);
  return true;
}

bool fabric::store(std::byte* into, std::span<const std::byte> from, bool hardware) const {
  if (is_on_device(into)) return devices->write(into, from, hardware);
  std::copy(from.begin(), from.end(), into);
  return true;
}

bool fabric::has_room(const side& from, std::size_t size) const {
  if (!from.open) return false;
  std::size_t waiting = from.software.in_flight;
  for (const auto& each : from.software.queue) {
    if (each.source != nullptr) return false;
    waiting += each.size;
  }
  return waiting + size <= link.socket_buffer;
}

void fabric::post(const connection_ptr& on, int index, transmission what, bool hardware) {
  what.id = next_id++;
  what.prototype.to = 1 - index;
  wire& through = wire_of(on, index, hardware);
  through.hardware = hardware;
  through.queue.push_back(std::move(what));
  push_wire(on, index, through, true);
}

void fabric::post(const connection_ptr& on, int index, frame what, bool hardware) {
  transmission single;
  single.size = what.header.size() + what.bytes.size();
  single.prototype = std::move(what);
  post(on, index, std::move(single), hardware);
}

void fabric::push(const connection_ptr& on, int index, bool by_process) {
  push_wire(on, index, side_of(on, index).software, by_process);
}

void fabric::push_wire(const connection_ptr& on, int index, wire& through, bool by_process) {
  side& from = side_of(on, index);
  if (through.busy || through.queue.empty() || from.worker == nullptr) return;
  if (!needs_nobody(on, through.hardware) &&
      (workers.find(from.worker) == nullptr || from.worker->process->killed)) {
    return;
  }
  const transmission& head = through.queue.front();
  std::size_t length = head.size;
  if (!through.hardware) {
    if (!from.open || from.worker->process->stopped) return;
    if (head.source != nullptr && !by_process) {
      // The bytes are the process's own: it hands them over in its next progress.
      from.worker->wants_push = true;
      return notify(*from.worker);
    }
  }
  if (head.source != nullptr) length = std::min(link.segment, head.size - head.sent);
  if (!through.hardware) {
    // The receiver's next progress makes room, and comes back here.
    if (through.in_flight > 0 && through.in_flight + length > link.socket_buffer) return;
    through.in_flight += length;
  }
  through.busy = true;
  after(duration(length), [this, on, index, hardware = through.hardware, id = head.id, length] {
    take_piece(on, index, hardware, id, length);
  });
}

bool fabric::read_source(transmission& from, std::size_t length, bool hardware, frame& into) {
  if (from.prototype.memory_id != 0 && memory(from.prototype.memory_id) == nullptr) {
    violate("memory was unmapped while a peer's get read it");
    return false;
  }
  if (!load(into.bytes, from.source + from.sent, length, hardware)) return false;
  const auto& operation = from.source_operation;
  if (operation != nullptr && !operation->sums.empty() &&
      operation->sums[from.sent / link.segment] != checksum(into.bytes.data(), length)) {
    violate(std::string(to_string(operation->kind)) +
            ": the buffer changed before the request completed");
  }
  if (from.damaged) into.bytes.back() ^= std::byte{1};
  return true;
}

void fabric::take_piece(const connection_ptr& on, int index, bool hardware, std::uint64_t id,
                        std::size_t length) {
  wire& through = wire_of(on, index, hardware);
  if (through.queue.empty() || through.queue.front().id != id) return;
  side& from = side_of(on, index);
  if (!needs_nobody(on, hardware) &&
      (workers.find(from.worker) == nullptr || from.worker->process->killed)) {
    return;
  }
  through.busy = false;
  transmission& head = through.queue.front();
  frame piece = head.prototype;
  piece.link = on;
  piece.offset = head.sent;
  piece.charged = hardware ? 0 : length;
  piece.by_adapter = hardware;
  if (head.sent > 0) piece.header.clear();
  const bool weightless = link.weightless && piece.kind == frame_kind::message &&
                          head.source != nullptr && head.size > link.inline_limit;
  if (weightless) {
    piece.missing = length;
  } else if (head.source != nullptr && !read_source(head, length, hardware, piece)) {
    piece.status = UCS_ERR_IO_ERROR;
  }
  head.sent += length;
  after(link.latency, [this, hardware, piece = std::move(piece)] { arrive(piece, hardware); });
  if (head.sent >= head.size || piece.status != UCS_OK) {
    const transmission done = std::move(head);
    through.queue.pop_front();
    sent_last(on, index, done);
  }
  push_wire(on, index, through, false);
}

void fabric::sent_last(const connection_ptr& on, int index, const transmission& done) {
  if (done.source_operation == nullptr) return;
  switch (done.prototype.kind) {
    case frame_kind::message:
      return finish(on, index, done.source_operation, UCS_OK);
    case frame_kind::put_data:
      // The buffer is free again; the operation lasts until the owner has answered.
      return complete(std::move(done.source_operation->request), UCS_OK);
    default:
      return;
  }
}

void fabric::arrive(frame what, bool hardware) {
  side& to = side_of(what.link, what.to);
  if (to.worker != nullptr && needs_nobody(what.link, hardware)) {
    if (what.kind == frame_kind::get_request) return take_get(what, true);
    if (what.kind == frame_kind::put_data) return take_put(what, true);
  }
  if (to.closed || to.worker == nullptr || workers.find(to.worker) == nullptr) return;
  if (to.worker->process->killed) return;
  if (!hardware) return put(*to.worker, std::move(what));
  switch (what.kind) {
    case frame_kind::get_request:
      return take_get(what, true);
    case frame_kind::put_data:
      return take_put(what, true);
    default:
      return take_data(what);
  }
}

void fabric::release_room(const frame& what) {
  const int sender = 1 - what.to;
  wire& through = wire_of(what.link, sender, false);
  through.in_flight -= std::min(through.in_flight, what.charged);
  if (through.queue.empty()) return;
  after(link.latency, [this, on = what.link, sender] { push(on, sender, false); });
}

memory_object* fabric::memory(std::uint64_t id) const {
  const auto found = memory_by_id.find(id);
  return found == memory_by_id.end() ? nullptr : found->second;
}

bool fabric::is_exposed(const frame& what) const {
  const auto* const region = memory(what.memory_id);
  if (region == nullptr) return false;
  if (region->context->process != side_of(what.link, what.to).worker->process) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(region->base);
  return what.address >= first && what.total <= region->length &&
         what.address - first <= region->length - what.total;
}

}  // namespace ucx::test::sim
