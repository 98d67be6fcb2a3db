#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include <ucp/api/ucp.h>

#include "message_halves.hpp"
#include "raw_ucx.hpp"
#include "ucx/context.hpp"

namespace ucx::benchmarks {
namespace {

constexpr ucp_tag_t raw_tag = 1;
constexpr unsigned raw_number = 1;  // of the handler

void require(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
}

class raw_half final : public half {
 public:
  explicit raw_half(plane where) : worker_(settings(where)) {
    worker_.handle_messages(raw_number, &raw_half::on_message, this);
  }
  ~raw_half() override { stop_receives(); }

  std::vector<std::byte> address() override { return worker_.address(); }
  void connect(const std::vector<std::byte>& peer, bool) override { peer_ = worker_.connect(peer); }

  void begin(message_way way, std::size_t size, unsigned most) override {
    stop_receives();
    way_ = way;
    size_ = size;
    places_.resize(size, most);
    posted_ = taken_ = 0;
    streamed_ = 0;
    if (way_ != message_way::tag) return;
    for (unsigned i = 0; i < most; ++i) post();
  }
  void send(std::span<const std::byte> bytes) override {
    ucp_request_param_t params = {};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.send = &raw_half::on_sent;
    params.user_data = this;
    ++unsent_;
    ucs_status_ptr_t sent = nullptr;
    switch (way_) {
      case message_way::tag:
        sent = ucp_tag_send_nbx(peer_, bytes.data(), bytes.size(), raw_tag, &params);
        break;
      case message_way::active:
        sent = ucp_am_send_nbx(peer_, raw_number, nullptr, 0, bytes.data(), bytes.size(), &params);
        break;
      case message_way::stream:
        sent = ucp_stream_send_nbx(peer_, bytes.data(), bytes.size(), &params);
        break;
    }
    if (UCS_PTR_IS_PTR(sent)) return;
    --unsent_;
    require(UCS_PTR_RAW_STATUS(sent), "a raw send");
  }
  unsigned unsent() const override { return unsent_; }
  unsigned poll() override {
    worker_.progress();
    unsigned came = 0;
    switch (way_) {
      case message_way::tag:
        for (; taken_ < posted_ && is_done(taken_); ++came, ++taken_) {
          last_ = places_.at(taken_);
          post();
        }
        break;
      case message_way::active:
        came = came_;
        came_ = 0;
        break;
      case message_way::stream:
        came = read_stream();
        break;
    }
    return came;
  }
  std::span<const std::byte> last() const override { return last_; }

 private:
  static raw_fabric settings(plane where) {
    ucx::context_options options = options_of(where);
    options.features = feature::am | feature::wakeup;
    raw_fabric fabric = fabric_of(where, ucx::context(options));
    fabric.every_message = true;
    return fabric;
  }

  static void on_sent(void* request, ucs_status_t status, void* self) {
    ucp_request_free(request);
    require(status, "a raw send");
    --static_cast<raw_half*>(self)->unsent_;
  }

  // Tags: a ring of receives.
  void post() {
    const ucp_request_param_t params = {};
    const std::span<std::byte> into = places_.next();
    void*& slot = receives_[posted_++ % receives_.size()];
    slot = ucp_tag_recv_nbx(worker_.handle(), into.data(), into.size(), raw_tag, ~ucp_tag_t{0},
                            &params);
    if (UCS_PTR_IS_ERR(slot)) require(UCS_PTR_RAW_STATUS(slot), "a raw receive");
  }
  bool is_done(std::size_t which) {
    void*& slot = receives_[which % receives_.size()];
    if (slot == nullptr) return true;
    if (ucp_request_check_status(slot) == UCS_INPROGRESS) return false;
    ucp_request_free(slot);
    slot = nullptr;
    return true;
  }
  void stop_receives() {
    for (; taken_ < posted_; ++taken_) {
      void* const slot = receives_[taken_ % receives_.size()];
      if (slot != nullptr) ucp_request_cancel(worker_.handle(), slot);
      while (!is_done(taken_)) worker_.progress();
    }
  }

  // Active messages: what comes whole is copied, the rest is asked for.
  static ucs_status_t on_message(void* self, const void*, std::size_t, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* params) {
    auto& mine = *static_cast<raw_half*>(self);
    const std::span<std::byte> into = mine.places_.next();
    if (length != into.size()) throw std::runtime_error("a raw message of another size");
    if ((params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      std::memcpy(into.data(), data, length);
      mine.arrived(into);
      return UCS_OK;
    }
    ucp_request_param_t receive = {};
    receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    receive.cb.recv_am = [](void* request, ucs_status_t status, std::size_t, void* which) {
      ucp_request_free(request);
      require(status, "a raw receive");
      const landing& ended = *static_cast<landing*>(which);
      ended.whose->arrived(ended.into);
    };
    landing& wanted = mine.landings_[mine.next_landing_++ % mine.landings_.size()];
    wanted = {&mine, into};
    receive.user_data = &wanted;
    ucs_status_ptr_t started =
        ucp_am_recv_data_nbx(mine.worker_.handle(), data, into.data(), length, &receive);
    if (UCS_PTR_IS_PTR(started)) return UCS_INPROGRESS;
    require(UCS_PTR_RAW_STATUS(started), "a raw receive");
    mine.arrived(into);
    return UCS_OK;
  }
  void arrived(std::span<const std::byte> where) noexcept {
    last_ = where;
    ++came_;
  }

  // The stream: what is there, without a receive that nobody could call off.
  unsigned read_stream() {
    unsigned came = 0;
    for (;;) {
      std::size_t length = 0;
      ucs_status_ptr_t const data = ucp_stream_recv_data_nb(peer_, &length);
      if (data == nullptr) return came;
      if (UCS_PTR_IS_ERR(data)) require(UCS_PTR_RAW_STATUS(data), "a raw stream");
      for (std::size_t at = 0; at < length;) {
        const std::span<std::byte> into = places_.at(taken_).subspan(streamed_);
        const std::size_t size = std::min(into.size(), length - at);
        std::memcpy(into.data(), static_cast<const std::byte*>(data) + at, size);
        at += size;
        streamed_ += size;
        if (streamed_ < size_) continue;
        streamed_ = 0;
        last_ = places_.at(taken_++);
        ++came;
      }
      ucp_stream_data_release(peer_, data);
    }
  }

  raw_worker worker_;
  ucp_ep_h peer_ = nullptr;
  message_way way_ = message_way::tag;
  std::size_t size_ = 0;
  message_places places_;
  std::array<void*, 256> receives_ = {};
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
  std::size_t streamed_ = 0;
  struct landing {
    raw_half* whose = nullptr;
    std::span<const std::byte> into;
  };
  std::array<landing, 256> landings_ = {};
  std::size_t next_landing_ = 0;
  std::span<const std::byte> last_;
  unsigned came_ = 0;
  unsigned unsent_ = 0;
};

}  // namespace

std::unique_ptr<half> make_raw_half(plane where) { return std::make_unique<raw_half>(where); }

}  // namespace ucx::benchmarks
