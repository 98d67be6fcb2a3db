#include "message/assembled_parts.hpp"

#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "message/frame_receiver.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "region/exposed/region_service.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

class assembled_parts final : public worker_parts {
 public:
  explicit assembled_parts(worker_core& worker)
      : connections_(worker,
                     [](endpoint_core& of) -> std::unique_ptr<connection_messages> {
                       const std::size_t window = of.worker().options().message_window;
                       return std::make_unique<message_link>(of, window);
                     }),
        sender_(worker),
        receiver_(worker),
        messages_(worker),
        service_(worker) {}

  connection_table& connections() noexcept override { return connections_; }
  frame_sender& sender() noexcept override { return sender_; }
  message_exchange& messages() noexcept override { return messages_; }
  region_service& service() noexcept override { return service_; }

  result<void> open() override {
    if (auto received = receiver_.open(); !received) return received;
    return sender_.open();
  }
  void close() noexcept override {
    connections_.served().close();
    connections_.deferred().drop_all_left();
  }
  void stop() noexcept override {
    service_.stop();
    messages_.close();
  }
  void leave() noexcept override { receiver_.close(); }
  void destroy_all_deferred() noexcept override { connections_.deferred().destroy_all_deferred(); }

  void copy() override { messages_.loans().read(); }
  void buffers_came() override { messages_.buffers_came(); }
  void reap() override { connections_.served().reap(); }
  bool pay_owed() noexcept override { return connections_.deferred().pay_owed(); }
  void destroy_deferred() noexcept override { connections_.deferred().destroy_deferred(); }
  bool has_deferred() noexcept override { return connections_.deferred().has_any(); }
  clock::time_point tick(clock::time_point now) override { return connections_.tick(now); }
  void run_handler(arrived_message& active, handler_queue& queue,
                   std::unique_lock<worker_lock>& guard,
                   const std::shared_ptr<worker_core>& kept) noexcept override {
    messages_.handlers().run(active, queue, guard, kept);
  }

  void connection_failed(const driven_connection& connection) noexcept override {
    service_.connection_failed(connection);
  }
  bool answering(const counted_region& region) const noexcept override {
    return service_.answering(region);
  }
  void withdraw(const counted_region& region) override { service_.withdraw(region); }
  void cut_off(const counted_region& region) override { service_.cut_off(region); }

 private:
  connection_table connections_;
  frame_sender sender_;
  frame_receiver receiver_;
  message_exchange messages_;
  region_service service_;
};

}  // namespace

std::unique_ptr<worker_parts> assemble_parts(worker_core& worker) {
  return std::make_unique<assembled_parts>(worker);
}

}  // namespace ucx::detail
