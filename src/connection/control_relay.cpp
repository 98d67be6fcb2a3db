#include "connection/control_relay.hpp"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/inbox_task.hpp"
#include "connection/connection_table.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "wire/control_message.hpp"
#include "wire/frame.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Before it is welcomed a peer says hello, and maybe that it has waited for too long.
constexpr std::size_t most_before_welcome = std::size_t{16} << 10U;

/// Has `to` do it, if it is still there.
template <class Work>
void post(const std::weak_ptr<worker_core>& to, Work work) {
  if (const std::shared_ptr<worker_core> kept = to.lock()) kept->post_work(std::move(work));
}

void end_for_shortage(const std::weak_ptr<endpoint_core>& peer) noexcept {
  if (const std::shared_ptr<endpoint_core> kept = peer.lock()) {
    kept->blame(errc::no_memory, "no memory for what the peer says, or is told");
  }
}

/// The session's worker leaves this for the connection's where memory is short.
class shortage final : public inbox_task {
 public:
  explicit shortage(std::weak_ptr<endpoint_core> peer) noexcept : peer_(std::move(peer)) {}

  void run(worker_core&) override { end_for_shortage(peer_); }

 private:
  std::weak_ptr<endpoint_core> peer_;
};

}  // namespace

/// The connection's worker leaves this for the session's where memory is short: who acts for the
/// client loses its rights all the same.
class control_relay::last_word final : public inbox_task {
 public:
  void say(std::shared_ptr<control_relay> of, std::error_code why) noexcept {
    of_ = std::move(of);
    why_ = why;
  }
  void run(worker_core& home) override {
    if (const std::shared_ptr<control_relay> of = std::move(of_)) of->end_at(home, why_);
  }

 private:
  std::shared_ptr<control_relay> of_;
  std::error_code why_;
};

class control_relay::way_back final : public channel {
 public:
  explicit way_back(std::shared_ptr<control_relay> relay) noexcept : relay_(std::move(relay)) {}

  void send(std::span<const std::byte> message) override {
    if (!relay_->welcomed_.load(std::memory_order_relaxed)) {
      const std::optional<control_header> said = decode_control(message);
      const bool welcomes = said && said->type == control_type::welcome && said->status == 0;
      relay_->welcomed_.store(welcomes, std::memory_order_relaxed);
    }
    relay_->on_the_way_.fetch_add(message.size(), std::memory_order_relaxed);
    try {
      post(relay_->away_,
           [relay = relay_, copy = std::vector<std::byte>(message.begin(), message.end())] {
             relay->on_the_way_.fetch_sub(copy.size(), std::memory_order_relaxed);
             const std::shared_ptr<endpoint_core> peer = relay->peer_.lock();
             if (!peer || peer->status()) return;
             try {
               peer->control().send(copy);
             } catch (const std::bad_alloc&) {
               end_for_shortage(peer);
             }
             relay->look_at_unsent();
           });
    } catch (const std::bad_alloc&) {
      relay_->on_the_way_.fetch_sub(message.size(), std::memory_order_relaxed);
      relay_->lacks_memory();
      throw;
    }
  }

  std::size_t longest() const noexcept override { return relay_->longest_; }

  std::size_t unsent() const noexcept override {
    return relay_->on_the_way_.load(std::memory_order_relaxed) +
           relay_->unsent_there_.load(std::memory_order_relaxed);
  }

  void take_turn(move_only_handler<> work) override {
    const std::shared_ptr<worker_core> home = relay_->home_.lock();
    if (!home) return;
    auto turn = [relay = relay_, work = std::move(work)]() mutable {
      if (relay->session_ == nullptr) return;
      try {
        work();
      } catch (const std::bad_alloc&) {
        relay->lacks_memory();
      }
    };
    home->connections().turns().add(relay_.get(), room_of_message, std::move(turn));
  }

  void blame(std::error_code why, const std::string& words) override {
    post(relay_->away_, [weak = relay_->peer_, why, words] {
      if (const std::shared_ptr<endpoint_core> peer = weak.lock()) peer->fail(why, words);
    });
  }

  peer_reach reach() const noexcept override { return relay_->reach_; }
  peer_facts facts() const override { return relay_->facts_; }

  void grant(std::uint64_t region, access rights) override {
    change_grants(
        [region, rights](endpoint_core& peer) { endpoint_channel(peer).grant(region, rights); });
  }
  void pass_file(std::uint64_t region, access rights) override {
    change_grants([region, rights](endpoint_core& peer) { peer.files().pass(region, rights); });
  }
  // Without memory to say it, the connection ends, and its grants with it.
  void end_grant(std::uint64_t region) noexcept override {
    change_grants([region](endpoint_core& peer) { peer.grants().remove(region); });
  }
  void end_grants() noexcept override {
    change_grants([](endpoint_core& peer) { peer.grants().clear(); });
  }
  void revoke_grant(std::uint64_t region) noexcept override {
    change_grants([region](endpoint_core& peer) { peer.grants().revoke(region); });
  }

 private:
  template <class Change>
  void change_grants(Change change) noexcept {
    try {
      post(relay_->away_, [weak = relay_->peer_, change] {
        const std::shared_ptr<endpoint_core> peer = weak.lock();
        if (!peer) return;
        try {
          change(*peer);
        } catch (const std::bad_alloc&) {
          end_for_shortage(peer);
        }
      });
    } catch (const std::bad_alloc&) {
      relay_->lacks_memory();
    }
  }

  const std::shared_ptr<control_relay> relay_;
};

control_relay::control_relay(endpoint_core& peer, std::weak_ptr<worker_core> home)
    : home_(std::move(home)),
      away_(peer.worker().weak_from_this()),
      peer_(peer.weak_from_this()),
      untold_(std::make_shared<shortage>(peer_)),
      longest_(endpoint_channel(peer).longest()),
      reach_(reach_of(peer)),
      facts_(endpoint_channel(peer).facts()) {}

/// A session opens regions of the context that its worker, `home`, belongs to.
peer_reach control_relay::reach_of(endpoint_core& peer) const {
  peer_reach made = endpoint_channel(peer).reach();
  const std::shared_ptr<worker_core> home = home_.lock();
  made.takes_keys = home && &home->context() == &peer.worker().context();
  return made;
}

std::shared_ptr<control_relay> control_relay::begin(endpoint_core& peer,
                                                    std::weak_ptr<worker_core> home) {
  std::shared_ptr<control_relay> made(new control_relay(peer, std::move(home)));
  made->self_ = made;
  made->last_word_ = std::make_shared<last_word>();
  peer.control().set_receiver(made.get());
  return made;
}

std::unique_ptr<channel> control_relay::make_channel() {
  return std::make_unique<way_back>(shared_from_this());
}

void control_relay::lacks_memory() noexcept {
  const std::shared_ptr<worker_core> away = away_.lock();
  if (away && untold_) away->hand_over(std::move(untold_));
}

void control_relay::look_at_unsent() {
  if (const std::shared_ptr<endpoint_core> peer = peer_.lock()) {
    unsent_there_.store(peer->control().unsent(), std::memory_order_relaxed);
  }
}

void control_relay::refuse(endpoint_core& peer, const std::optional<control_header>& said) {
  endpoint_channel to(peer);
  const bool may_refuse = ++refusals_ <= control_queue::most_refusals;
  if (may_refuse && said && to.refuse(*said)) return;
  to.blame(errc::protocol_error, "the peer does not wait for its answers");
}

void control_relay::received(std::span<const std::byte> message) {
  look_at_unsent();
  const std::size_t room = message.size() + room_of_message;
  const std::size_t waiting = arriving_.load(std::memory_order_relaxed);
  if (waiting == 0) refusals_ = 0;
  const std::size_t taken = waiting + room;
  const std::size_t most =
      welcomed_.load(std::memory_order_relaxed) ? control_queue::most_waiting : most_before_welcome;
  if (taken > most) {
    const std::optional<control_header> said = decode_control(message);
    const bool is_kept = most == control_queue::most_waiting && said && has_no_answer(*said);
    if (!is_kept || taken > control_queue::most_unanswerable) {
      const std::shared_ptr<endpoint_core> peer = peer_.lock();
      if (peer) refuse(*peer, most == control_queue::most_waiting ? said : std::nullopt);
      return;
    }
  }
  std::vector<std::byte> copy(message.begin(), message.end());
  arriving_.fetch_add(room, std::memory_order_relaxed);
  try {
    post(home_, [self = shared_from_this(), room, copy = std::move(copy)]() mutable {
      self->await_turn(std::move(copy), room);
    });
  } catch (const std::bad_alloc&) {
    arriving_.fetch_sub(room, std::memory_order_relaxed);
    throw;
  }
}

/// Where the session lives, the message waits among those of other connections. One that there is
/// no memory for is lost, and nothing of the connection is heard behind it.
void control_relay::await_turn(std::vector<std::byte>&& message, std::size_t room) noexcept {
  const std::shared_ptr<worker_core> home = home_.lock();
  if (!home) return;
  try {
    home->connections().turns().add(this, room,
                                    [self = shared_from_this(), room, copy = std::move(message)] {
                                      self->arriving_.fetch_sub(room, std::memory_order_relaxed);
                                      self->serve(copy);
                                    });
  } catch (const std::bad_alloc&) {
    arriving_.fetch_sub(room, std::memory_order_relaxed);
    lacks_memory();
  }
}

void control_relay::serve(std::span<const std::byte> message) noexcept {
  if (session_ == nullptr) return;
  try {
    session_->received(message);
  } catch (const std::bad_alloc&) {
    lacks_memory();
  }
}

void control_relay::ended(std::error_code why) noexcept {
  const std::shared_ptr<control_relay> self = std::move(self_);
  const std::shared_ptr<worker_core> home = home_.lock();
  if (!home) return;
  try {
    home->post_work([self, why] {
      if (const std::shared_ptr<worker_core> kept = self->home_.lock()) self->end_at(*kept, why);
    });
  } catch (const std::bad_alloc&) {
    // Ahead of what was said before, which nothing answers any more.
    last_word_->say(self, why);
    home->hand_over(std::move(last_word_));
  }
}

void control_relay::end_at(worker_core& home, std::error_code why) noexcept {
  home.connections().turns().drop(this);
  if (channel_receiver* const told = std::exchange(session_, nullptr)) told->ended(why);
}

}  // namespace ucx::detail
