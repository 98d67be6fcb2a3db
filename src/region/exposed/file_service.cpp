#include "region/exposed/file_service.hpp"

#include <new>
#include <system_error>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/region_service.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

file_service::file_service(worker_core& worker) : worker_(worker), idle_(64) {}

file_service::~file_service() {
  stop();
  // Their pieces went with UCX's worker, which tells of them or does not.
  while (file_answer* left = answers_.front()) left->forget();
}

void file_service::stop() noexcept {
  stopped_ = true;
  slow_.reset();
}

std::size_t file_service::piece_size() const noexcept { return worker_.context().answer_piece(); }

void file_service::read(endpoint_core& from, exposed_region& region, held_access& access,
                        const frame& asked) {
  std::unique_ptr<file_answer> idle(idle_.take());
  file_client& client = clients_[&from];
  client.peer = &from;
  ++client.answers;
  file_answer* const answer = idle.release();
  answers_.push_back(*answer);
  access.leave();
  answer->begin(*this, client, from, region, asked);
  serve();
}

void file_service::refuse(endpoint_core& to, const frame& asked, std::error_code why) {
  worker_.service().refuse(to, asked, why);
}

void file_service::ended(file_answer& answer) noexcept {
  file_client& client = answer.client();
  answers_.remove(answer);
  idle_.give_back(&answer);
  if (--client.answers == 0) clients_.erase(client.peer);
}

void file_service::queue(file_answer& hungry) {
  hungry.client().hungry.push_back(hungry);
  place(hungry.client());
}

void file_service::unqueue(file_answer& fed) noexcept {
  fed.client().hungry.remove(fed);
  place(fed.client());
}

/// Puts a client where it belongs among those who wait, behind the others.
void file_service::place(file_client& client) noexcept {
  file_client::list* wanted = nullptr;
  if (!client.hungry.empty()) wanted = client.buffers == 0 ? &starving_ : &sharing_;
  if (client.queue == wanted) return;
  if (client.queue != nullptr) client.queue->remove(client);
  client.queue = wanted;
  if (wanted != nullptr) wanted->push_back(client);
}

/// Takes out the client that gets a buffer next; null when no client may have one.
file_client* file_service::next_in_line() noexcept {
  file_client* next = starving_.front();
  if (next == nullptr && in_use_ < most_buffers) next = sharing_.front();
  if (next != nullptr) std::exchange(next->queue, nullptr)->remove(*next);
  return next;
}

void file_service::serve() {
  // A client may give its buffer back before read_into() returns; the outer call's loop sees that.
  if (std::exchange(serving_, true)) return;
  while (file_client* next = next_in_line()) {
    file_answer& fed = *next->hungry.front();
    staging_buffer buffer = worker_.staging_shelf().take(piece_size());
    if (buffer) {
      ++in_use_;
      ++next->buffers;
      place(*next);
      fed.read_into(std::move(buffer));
    } else {
      place(*next);
      fed.refuse(errc::no_memory);
    }
  }
  serving_ = false;
}

void file_service::keep(staging_buffer buffer) noexcept {
  --in_use_;
  worker_.staging_shelf().put_back(std::move(buffer));
}

void file_service::give_back(file_client& client, staging_buffer buffer) noexcept {
  keep(std::move(buffer));
  --client.buffers;
  if (client.buffers == 0) place(client);
}

void file_service::abandon_buffer(file_client& client) noexcept {
  --client.buffers;
  if (client.buffers == 0) place(client);
}

void file_service::reclaim_buffers() noexcept {
  if (!slow_) return;
  try {
    for (const std::shared_ptr<slow_read>& each : slow_->take_unwanted()) {
      keep(std::move(each->buffer));
    }
  } catch (const std::bad_alloc&) {  // then they come back when the disk has looked at them
  }
}

bool file_service::read_slowly(std::shared_ptr<slow_read> read) {
  if (stopped_) return false;
  if (!slow_) {
    try {
      slow_ = std::make_unique<reading_thread>(
          [this](std::shared_ptr<slow_read> done) { worker_.hand_over(std::move(done)); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  slow_->start(std::move(read));
  return true;
}

void slow_read::run(worker_core& /*by*/) { service->finished(*this); }

void file_service::finished(slow_read& done) {
  if (done.answer != nullptr) {
    done.answer->read_done(done);
  } else {
    keep(std::move(done.buffer));
  }
  serve();
}

bool file_service::answering(const counted_region& region) const noexcept {
  for (file_answer* answer = answers_.front(); answer != nullptr; answer = answers_.next(*answer)) {
    if (answer->region() == &region) return true;
  }
  return false;
}

void file_service::withdraw(const counted_region& region) {
  for (file_answer* answer = answers_.front(); answer != nullptr;) {
    file_answer* next = answers_.next(*answer);
    if (answer->region() == &region) answer->refuse(errc::revoked);
    answer = next;
  }
  serve();
}

void file_service::connection_failed(const driven_connection& connection) {
  for (file_answer* answer = answers_.front(); answer != nullptr;) {
    file_answer* next = answers_.next(*answer);
    if (&answer->peer() == &connection) answer->peer_failed();
    answer = next;
  }
  serve();
}

}  // namespace ucx::detail
