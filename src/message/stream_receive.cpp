#include "message/stream_receive.hpp"

#include <algorithm>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/message_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void stream_receive::begin(worker_core& worker, kept_alive&& held, clock::time_point deadline,
                           stream_amount amount, std::span<std::byte> into) {
  into_.assign(into);
  const std::error_code unreachable = into_.find_devices(worker.copiers());
  received_ = 0;
  amount_ = amount;
  start(worker, std::move(held), deadline);
  endpoint()->messages().wait_began();
  if (unreachable) finish(unreachable);
}

std::size_t stream_receive::feed(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(bytes.size(), wants());
  if (const std::error_code ec = into_.copy_in(received_, bytes.first(size), deadline())) {
    finish(ec);
    return 0;
  }
  received_ += size;
  if (amount_ == stream_amount::some || wants() == 0) finish({});
  return size;
}

void stream_receive::finish(std::error_code outcome) noexcept {
  message_link& link = endpoint()->messages();
  if (list_hook<stream_tag>::linked()) link.incoming().remove_from_stream(*this);
  link.wait_ended();
  complete(outcome);
}

std::string stream_receive::describe() const {
  std::string text = "receive of bytes of the stream from " + endpoint()->peer_name();
  if (received_ == 0) return text;
  return text.append(" (of ").append(std::to_string(received_)).append(" bytes)");
}

void stream_receive::recycle() noexcept {
  if (into_.on_device()) into_.clear();  // which lets go of who copies
  worker().pool_of<stream_receive>().give_back(this);
}

}  // namespace ucx::detail
