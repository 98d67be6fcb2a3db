#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "message_halves.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

constexpr std::uint64_t tag = 1;
constexpr std::uint64_t hello = 2;
constexpr std::uint64_t number = 3;  // of the handler

/// Requests in the order in which they were started, without memory for each.
class request_ring {
 public:
  bool empty() const noexcept { return begin_ == end_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  void push(ucx::request started) {
    if (size() == ring_.size()) throw std::logic_error("more requests in flight than places");
    ring_[end_++ % ring_.size()] = std::move(started);
  }
  /// Takes the first if it is done.
  bool pop() {
    if (empty()) return false;
    ucx::request& first = ring_[begin_ % ring_.size()];
    if (!first.done()) return false;
    if (first.error()) throw std::runtime_error("our message: " + first.error().message());
    first = ucx::request();  // as by hand: the next one finds it warm
    ++begin_;
    return true;
  }
  void clear() {
    for (ucx::request& each : ring_) each = ucx::request();
    begin_ = end_ = 0;
  }

 private:
  std::vector<ucx::request> ring_ = std::vector<ucx::request>(256);
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

ucx::context_options messages_over(plane where) {
  ucx::context_options options = options_of(where);
  options.features = feature::am | feature::wakeup;
  return options;
}

class our_half final : public half {
 public:
  explicit our_half(plane where)
      : context_(messages_over(where)), worker_(context_, {.progress = progress_mode::external}) {}
  ~our_half() override { worker_.on_message(number, {}); }

  std::vector<std::byte> address() override { return worker_.address().encode(); }
  void connect(const std::vector<std::byte>& peer, bool asks) override {
    if (asks) {
      peer_.emplace(worker_, ucx::worker_address::decode(peer));
      peer_->wait_connected();
      peer_->send(hello, {});
    } else {
      std::optional<ucx::message> knocks;
      while (!(knocks = worker_.take(hello))) worker_.progress();
      peer_.emplace(knocks->peer());
    }
    worker_.on_message(number, [this](ucx::message came) { arrived(came); });
  }

  void begin(message_way way, std::size_t size, unsigned most) override {
    receives_.clear();
    way_ = way;
    places_.resize(size, most);
    taken_ = copied_ = 0;
    if (way_ == message_way::active) return;
    for (unsigned i = 0; i < most; ++i) post();
  }
  void send(std::span<const std::byte> bytes) override {
    ucx::request sent = way_ == message_way::tag ? peer_->start_send(tag, bytes)
                        : way_ == message_way::active
                            ? peer_->start_send(ucx::active_message{number}, bytes)
                            : peer_->start_stream_send(bytes);
    if (!sent.done()) return sends_.push(std::move(sent));
    if (sent.error()) throw std::runtime_error("our send: " + sent.error().message());
  }
  unsigned unsent() const override { return static_cast<unsigned>(sends_.size()); }
  unsigned poll() override {
    worker_.progress();
    while (sends_.pop()) {
    }
    unsigned came = std::exchange(copied_, 0);
    while (receives_.pop()) {
      ++came;
      if (way_ != message_way::active) post();
    }
    if (came > 0) last_ = places_.at((taken_ += came) - 1);
    return came;
  }
  std::span<const std::byte> last() const override { return last_; }

 private:
  // As by hand: what comes whole is copied, the rest is asked for.
  void arrived(ucx::message& came) {
    const std::span<std::byte> into = places_.next();
    if (!came.has_payload()) return receives_.push(came.start_receive(into));
    if (came.length() != into.size()) throw std::runtime_error("our message of another size");
    std::memcpy(into.data(), came.data().data(), into.size());
    ++copied_;
  }
  void post() {
    const std::span<std::byte> into = places_.next();
    receives_.push(way_ == message_way::tag
                       ? peer_->start_receive(tag, into)
                       : peer_->start_stream_receive(into, stream_amount::all));
  }

  ucx::context context_;
  ucx::worker worker_;
  std::optional<ucx::endpoint> peer_;
  message_way way_ = message_way::tag;
  message_places places_;
  std::size_t taken_ = 0;
  unsigned copied_ = 0;
  std::span<const std::byte> last_;
  request_ring receives_;
  request_ring sends_;
};

}  // namespace

std::unique_ptr<half> make_our_half(plane where) { return std::make_unique<our_half>(where); }

}  // namespace ucx::benchmarks
