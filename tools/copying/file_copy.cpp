#include "copying/file_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

constexpr std::size_t block = std::size_t{4} << 10U;  // what a hole consists of

bool is_zero(std::span<const std::byte> bytes) noexcept {
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::equal(bytes.begin() + 1, bytes.end(), bytes.begin()));
}

failure failure_of(const std::exception& what) {
  if (const auto* known = dynamic_cast<const failure*>(&what)) return *known;
  if (const auto* known = dynamic_cast<const error*>(&what)) {
    return failure(exit_code_of(known->code()), known->what());
  }
  return failure(exit_code::failure, what.what());
}

}  // namespace

failure interrupted() { return failure(exit_code::interrupted, "interrupted"); }

file_copy::file_copy(const copy_task& task, const copy_context& context)
    : task_(task),
      context_(context),
      source_(open_source(task.from, context.terms, context.clients)),
      piece_size_(context.limit.piece(piece_size)) {
  check_size(task.from, source_->size(), context.terms);
  if (context.terms.resume && is_there()) {
    next_ = written_ = source_->size();
    context.counters.present += next_;
    return;
  }
  copy_terms terms = context.terms;
  terms.is_from_server = task.from.is_remote();
  target_ = open_target(task.to, source_->size(), terms, context.clients);
  has_holes_ = context.terms.sparse && target_->may_have_holes();
  try {
    if (context.terms.resume) {
      resume();
    } else {
      target_->begin(0);
    }
  } catch (const std::exception&) {
    if (target_->present() > 0) context.left_something = true;
    throw;
  }
  if (context.terms.hash && next_ == 0) hasher_.emplace();
}

void check_size(const location& of, std::uint64_t size, const copy_terms& terms) {
  if (size <= terms.largest) return;
  throw failure(
      exit_code::no_space,
      fmt::format("{}: it has {} bytes, and --max-size is {}", to_string(of), size, terms.largest),
      failure::reach::one_file);
}

/// Returns whether an earlier copy has finished this file.
bool file_copy::is_there() {
  copy_terms only_hashed = context_.terms;
  only_hashed.source_codec = codec::none;
  try {
    const std::unique_ptr<copy_source> there = open_source(task_.to, only_hashed, context_.clients);
    return there->size() == source_->size() &&
           !first_difference(source_->size(),
                             [&](const digest_range& part) { return there->digests(part); });
  } catch (const failure& why) {
    check_stop();
    if (why.ends_all()) throw;  // who asks a silent server once more waits once more
    return false;
  }
}

void file_copy::check_stop() const {
  if (context_.stop.stop_requested()) throw interrupted();
}

/// Keeps of an earlier copy what both ends have the same hash of: whole chunks.
void file_copy::resume() {
  const std::uint64_t there = target_->present();
  const bool may_restart = context_.terms.restart_changed;
  if (there > source_->size() && !may_restart) {
    throw failure(exit_code::content_changed,
                  fmt::format("{}: it has {} bytes, and {} were copied before: it was changed; "
                              "--restart-changed copies it anew",
                              to_string(task_.from), source_->size(), there));
  }
  std::uint64_t present = std::min(there, source_->size());
  present -= present % digest_chunk;
  const auto at = first_spoiled(present);
  if (at && !may_restart) {
    throw difference(exit_code::content_changed,
                     "it is not what was copied before; --restart-changed copies it anew", *at);
  }
  present = at.value_or(present);
  target_->begin(present);
  next_ = written_ = present;
  context_.counters.present += present;
}

/// Has both ends hash the first `length` bytes, at the same time; returns the beginning of the
/// first chunk that they have not in common.
std::optional<std::uint64_t> file_copy::first_difference(std::uint64_t length,
                                                         const hashing& other) {
  constexpr std::uint64_t window = std::uint64_t{64} << 20U;
  for (std::uint64_t offset = 0; offset < length; offset += window) {
    check_stop();
    const digest_range part{
        .offset = offset, .length = std::min(window, length - offset), .chunk = digest_chunk};
    auto theirs = std::async(std::launch::async, [&] { return source_->digests(part); });
    const std::vector<content_digest> ours = other(part);
    const std::vector<content_digest> expected = theirs.get();
    context_.counters.hashed += part.length;
    const auto at = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end()).first;
    if (at == ours.end() && ours.size() == expected.size()) continue;
    return offset + static_cast<std::uint64_t>(at - ours.begin()) * digest_chunk;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> file_copy::first_spoiled(std::uint64_t length) {
  return first_difference(length,
                          [this](const digest_range& part) { return target_->digests(part); });
}

failure file_copy::difference(exit_code code, const char* what, std::uint64_t at) const {
  return failure(code, fmt::format("{}: {} (bytes from {} on)", to_string(task_.from), what, at));
}

bool file_copy::join() {
  const std::lock_guard guard(mutex_);
  if (failed_ || next_ >= source_->size()) return false;
  ++users_;
  return true;
}

std::optional<file_copy::piece> file_copy::take() {
  const std::lock_guard guard(mutex_);
  const std::uint64_t size = source_->size();
  if (!failed_ && context_.stop.stop_requested()) failed_ = interrupted();
  if (!failed_ && has_holes_ && next_ < size) {
    const std::uint64_t data = source_->next_data(next_);
    context_.counters.present += data - next_;
    next_ = data;
  }
  if (failed_ || next_ >= size) return std::nullopt;
  piece taken;
  taken.index = next_index_++;
  taken.offset = next_;
  taken.size = static_cast<std::size_t>(std::min<std::uint64_t>(piece_size_, size - next_));
  next_ += taken.size;
  return taken;
}

void file_copy::fail(const failure& why) {
  const std::lock_guard guard(mutex_);
  if (!failed_) failed_ = context_.stop.stop_requested() ? interrupted() : why;
  for (std::condition_variable& each : turns_) each.notify_all();
}

void file_copy::move(const piece& taken, std::span<std::byte> buffer) noexcept {
  try {
    context_.limit.take(taken.size, context_.stop);
    check_stop();
    const std::span<std::byte> bytes = buffer.first(taken.size);
    source_->read(taken.offset, bytes);
    {
      std::unique_lock guard(mutex_);
      turn_of(taken.index).wait(guard, [&] { return failed_ || turn_ == taken.index; });
      if (failed_) return;
    }
    hash(taken.offset, bytes);
    put(taken, bytes);
    context_.counters.bytes += taken.size;
    const std::lock_guard guard(mutex_);
    written_ = taken.offset + taken.size;
    turn_of(++turn_).notify_one();
  } catch (const std::exception& what) {
    fail(failure_of(what));
  }
}

void file_copy::put(const piece& taken, std::span<const std::byte> bytes) {
  if (!has_holes_) return target_->write(taken.offset, bytes);
  const auto is_hole = [&](std::size_t at) {
    return is_zero(bytes.subspan(at, std::min(block, bytes.size() - at)));
  };
  for (std::size_t at = 0; at < bytes.size();) {
    if (is_hole(at)) {
      at += block;
      continue;
    }
    std::size_t end = at + block;
    while (end < bytes.size() && !is_hole(end)) end += block;
    end = std::min(end, bytes.size());
    target_->write(taken.offset + at, bytes.subspan(at, end - at));
    at = end;
  }
}

/// Bytes that were left out before are a hole, and read as zeros.
void file_copy::hash(std::uint64_t offset, std::span<const std::byte> bytes) {
  static constexpr std::array<std::byte, std::size_t{64} << 10U> zeros{};
  if (!hasher_) return;
  while (hashed_ < offset) {
    const auto count = std::min<std::uint64_t>(zeros.size(), offset - hashed_);
    hasher_->update(std::span(zeros).first(static_cast<std::size_t>(count)));
    hashed_ += count;
  }
  hasher_->update(bytes);
  hashed_ += bytes.size();
}

/// Where some of it was there before, the owner of the source hashes all of it.
content_digest file_copy::whole_digest() {
  const std::uint64_t size = source_->size();
  if (hasher_) {
    hash(size, {});
    return hasher_->digest();
  }
  copy_terms only_hashed = context_.terms;
  only_hashed.source_codec = codec::none;
  const std::unique_ptr<copy_source> all = open_source(task_.from, only_hashed, context_.clients);
  if (all->size() == 0 && size == 0) return digest_of({});
  const content_digest whole = all->digests({.length = size, .chunk = size}).at(0);
  source_->check_unchanged();
  return whole;
}

bool file_copy::leave() {
  const std::lock_guard guard(mutex_);
  return --users_ == 0;
}

/// Checks what is there, and gives it its name.
void file_copy::give_name() {
  target_->complete(source_->size());
  // A changed source is no damage; and smaller ones of servers came in one piece.
  const bool may_have_changed = is_large() || has_holes_ || !task_.from.is_remote();
  if (may_have_changed || context_.terms.verify) source_->check_unchanged();
  if (context_.terms.verify) {
    const auto at = first_spoiled(source_->size());
    source_->check_unchanged();
    if (at) throw difference(exit_code::integrity, "what was copied of it is not what it is", *at);
  }
  target_->commit(context_.terms.preserve ? source_->facts() : source_facts());
}

void file_copy::finish() {
  try {
    if (failed_) throw failure(*failed_);
    check_stop();
    std::optional<content_digest> whole;
    if (context_.terms.hash) whole = whole_digest();
    if (target_) give_name();  // else it was there
    ++context_.counters.files;
    if (whole) context_.tell_hash(task_.to, *whole);
  } catch (const std::exception& what) {
    const failure why = context_.stop.stop_requested() ? interrupted() : failure_of(what);
    const bool is_good =
        why.code() != exit_code::content_changed && why.code() != exit_code::integrity;
    if (!target_) throw failure(why);
    if (target_->keep(is_good && written_ >= digest_chunk)) context_.left_something = true;
    target_.reset();
    throw failure(why);
  }
}

}  // namespace ucx::tool
