// A program that was written for the version before. It uses each name and form that stays for one
// version, compiles with warnings alone, and is never run.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>
#include <ucx/atomic_access.hpp>
#include <ucx/awaitable.hpp>
#include <ucx/buffer.hpp>
#include <ucx/buffer_pool.hpp>
#include <ucx/bulk_open.hpp>
#include <ucx/client.hpp>
#include <ucx/completion_handler.hpp>
#include <ucx/connection_manager.hpp>
#include <ucx/connection_report.hpp>
#include <ucx/connection_request.hpp>
#include <ucx/connection_terms.hpp>
#include <ucx/content_id.hpp>
#include <ucx/context.hpp>
#include <ucx/create_options.hpp>
#include <ucx/cstdio.hpp>
#include <ucx/descriptor_feed.hpp>
#include <ucx/directory_listing.hpp>
#include <ucx/endpoint.hpp>
#include <ucx/endpoint_options.hpp>
#include <ucx/error.hpp>
#include <ucx/export.hpp>
#include <ucx/filebuf.hpp>
#include <ucx/filesystem.hpp>
#include <ucx/huge_pages.hpp>
#include <ucx/io_options.hpp>
#include <ucx/listener.hpp>
#include <ucx/log.hpp>
#include <ucx/memory_copy.hpp>
#include <ucx/memory_kind.hpp>
#include <ucx/memory_pool.hpp>
#include <ucx/memory_region.hpp>
#include <ucx/memory_resources.hpp>
#include <ucx/message.hpp>
#include <ucx/message_handlers.hpp>
#include <ucx/message_info.hpp>
#include <ucx/message_parts.hpp>
#include <ucx/notification.hpp>
#include <ucx/payload.hpp>
#include <ucx/pipe_broker.hpp>
#include <ucx/pipe_options.hpp>
#include <ucx/pipe_streambuf.hpp>
#include <ucx/progress_loop.hpp>
#include <ucx/region_piece.hpp>
#include <ucx/remote_atomic.hpp>
#include <ucx/remote_descriptor.hpp>
#include <ucx/remote_file.hpp>
#include <ucx/remote_region.hpp>
#include <ucx/remote_streambuf.hpp>
#include <ucx/request.hpp>
#include <ucx/scheduled_call.hpp>
#include <ucx/sealed_copy.hpp>
#include <ucx/send_options.hpp>
#include <ucx/server.hpp>
#include <ucx/socket_address.hpp>
#include <ucx/staging_statistics.hpp>
#include <ucx/store_options.hpp>
#include <ucx/stream_options.hpp>
#include <ucx/stream_statistics.hpp>
#include <ucx/tag_match.hpp>
#include <ucx/url.hpp>
#include <ucx/version.hpp>
#include <ucx/wait.hpp>
#include <ucx/way.hpp>
#include <ucx/worker.hpp>
#include <ucx/worker_address.hpp>
#include <ucx/worker_attributes.hpp>
#include <ucx/worker_options.hpp>
#include <utility>
#include <vector>
#if __has_include(<boost/iostreams/categories.hpp>)
#include <ucx/boost_mapped.hpp>
#endif

namespace {

using byte_spans = std::span<const std::span<const std::byte>>;

void of_clients(ucx::client& client, ucx::remote_region& file, std::error_code& ec) {
  (void)client.list(ec);
  (void)client.stat("name", ec);
  (void)client.open("name", ucx::access::read, ec);
  (void)client.list_directory("directory", ec);
  (void)client.create("name", {}, ec);
  (void)client.commit(file, false, ec);
  (void)client.commit(std::move(file), false, ec);
  (void)client.commit(file, true);
  (void)client.commit(std::move(file));
  (void)client.measure(file, 0, std::chrono::nanoseconds(0), ec);
  (void)client.digest(file, {}, ec);
  client.remove("name", ec);
  client.rename("name", "other", ec);
  client.resize("name", 1, ec);
  client.resize(file, 1, ec);
  (void)ucx::read_directory(client, "directory", ec);
  const ucx::entry_visitor visitor;
  ucx::visit_names(client, visitor, ec);
  (void)ucx::visit_directory(client, "directory", visitor, ec);
  (void)ucx::read_directory(client, "directory");
  ucx::visit_names(client, visitor);
  (void)ucx::visit_directory(client, "directory", visitor);
  (void)client.reconnected();
  (void)client.lane(1);
  (void)ucx::open_file(client, "name", "r", ec);
  (void)ucx::open_file("name", "r", ec);
}

void of_listings(const ucx::directory_listing& listing, ucx::client& client) {
  for (auto each = listing.begin(); each != listing.end(); ++each) (void)each->name;
  if (!listing.empty()) (void)listing[listing.size() - 1];
  const std::vector<ucx::entry> copied = listing;
  const std::vector<ucx::entry> moved = client.list_directory("directory");
  (void)copied.size();
  (void)moved.size();
}

void of_urls(const ucx::url& name) {
  (void)ucx::exists(name);
  (void)ucx::file_size(name);
  (void)ucx::last_write_time(name);
  (void)ucx::list_directory(name);
  (void)ucx::remove(name);
  ucx::rename(name, name);
  ucx::resize_file(name, 1);
}

void of_regions(ucx::remote_region& region, std::span<std::byte> bytes, std::error_code& ec) {
  region.read_at(0, bytes, ec);
  region.write_at(0, bytes, ec, {.timeout = std::chrono::seconds(1)});
  region.post_read_at(0, bytes, ec);
  region.post_write_at(0, bytes, ec);
  const std::array<ucx::read_piece, 1> reads{};
  region.read_batch(reads, ec);
  const std::array<ucx::write_piece, 1> writes{};
  region.write_batch(writes, ec);
  region.notify(1, ec);
  region.flush(ec);
  (void)region.why_not_mapped();
  (void)region.why_not_read();
}

void of_feeds(const ucx::remote_region& region) {
  const ucx::descriptor_feed_options options;
  ucx::descriptor_feed feed(region, options);
  (void)feed.reader();
  (void)feed.take_reader();
  (void)feed.fed();
}

#if __has_include(<boost/iostreams/categories.hpp>)
void of_boost(const ucx::remote_region& region) {
  const ucx::mapped_source source(region);
  const ucx::mapped_sink sink(region);
  (void)source.input_sequence();
  (void)sink.output_sequence();
}
#endif

void of_atomics(ucx::remote_region& region, std::error_code& ec) {
  ucx::remote_atomic<std::uint64_t> number(region, 0);
  std::uint64_t expected = 0;
  (void)number.load(ec);
  (void)number.compare_exchange(expected, 1, ec);
  (void)number.exchange(1, ec);
  (void)number.fetch_add(1, ec);
  (void)number.fetch_and(1, ec);
  (void)number.fetch_or(1, ec);
  (void)number.fetch_xor(1, ec);
  number.store(1, ec);
  number.store_add(1, ec);
  number.store_and(1, ec);
  number.store_or(1, ec);
  number.store_xor(1, ec);
  std::uint64_t previous = 0;
  (void)number.start_load(previous);
  (void)number.start_compare_exchange(0, 1, previous);
  (void)number.start_exchange(1, previous);
  (void)number.start_fetch_add(1, previous);
  (void)number.start_fetch_and(1, previous);
  (void)number.start_fetch_or(1, previous);
  (void)number.start_fetch_xor(1, previous);
  (void)number.start_store(1);
  (void)number.start_store_add(1);
  (void)number.start_store_and(1);
  (void)number.start_store_or(1);
  (void)number.start_store_xor(1);
}

void of_messages(ucx::endpoint& peer, std::span<std::byte> bytes, std::error_code& ec) {
  const std::array<std::span<const std::byte>, 1> several{bytes};
  peer.flush(ec);
  peer.send(1, bytes, ec);
  peer.send_parts(1, several, ec);
  (void)peer.receive(1, bytes, ec);
  peer.send_message(1, {}, bytes, ec);
  peer.stream_send(bytes, ec);
  (void)peer.stream_receive(bytes, ucx::stream_amount::some, ec);
  peer.post_send(1, bytes, 0, ec);
  peer.post_send(1, byte_spans(several), 0, ec, {.full = ucx::when_full::fail});
  peer.post_send(1, ucx::buffer(1), 0, ec);
  peer.post_send_parts(1, several, 0, ec);
  peer.post_send_message(1, {}, bytes, 0, ec);
  peer.post_send_message(1, {}, byte_spans(several), 0, ec);
  peer.post_send_message(1, {}, ucx::buffer(1), 0, ec);
}

void of_sends(ucx::endpoint& peer, std::span<const std::byte> bytes) {
  const std::array<std::span<const std::byte>, 1> several{bytes};
  (void)peer.start_send_parts(1, several);
  peer.send_parts(1, several);
  peer.post_send_parts(1, several, 0, {.full = ucx::when_full::fail});
  (void)peer.start_send_message(1, bytes, bytes);
  (void)peer.start_send_message(1, {}, several, {.timeout = std::chrono::seconds(1)});
  (void)peer.start_send_message(1, {}, ucx::buffer(1));
  peer.send_message(1, bytes, bytes);
  peer.post_send_message(1, {}, bytes, 0);
  peer.post_send_message(1, {}, several, 0);
  peer.post_send_message(1, {}, ucx::buffer(1), 0);
}

void of_receives(ucx::endpoint& peer, ucx::worker& worker, ucx::message& message) {
  ucx::buffer made;
  ucx::buffer_pool pool;
  ucx::message_parts parts;
  const ucx::memory_resources from;
  (void)peer.start_receive(1, made, 100);
  (void)peer.start_receive(1, made, pool);
  (void)peer.start_receive(1, parts, 100);
  (void)worker.start_receive(1, made, 100, {.timeout = std::chrono::seconds(1)});
  (void)worker.start_receive(1, made, pool);
  (void)worker.start_receive(1, parts, 100);
  (void)message.start_receive(made, 100);
  (void)message.start_receive(made, pool);
  (void)message.start_receive(parts, 100);
  (void)message.start_receive(made, from, 100, ucx::missing_resource::strict);
}

void of_workers(ucx::worker& worker, ucx::memory_region& region, ucx::message& message,
                std::span<std::byte> bytes, std::error_code& ec) {
  worker.flush(ec);
  (void)worker.receive(1, bytes, ec);
  (void)region.wait_notify(worker, ec);
  message.receive(bytes, ec);
  ucx::copy_memory(bytes.data(), bytes.data(), bytes.size(), ec);
  (void)ucx::worker::adopt(worker.parent(), nullptr, ucx::worker_options(), ec);
}

void of_events(std::error_code& ec) {
  ucx::endpoint_options options;
  options.on_established = [](const ucx::connection_report&) {};
  options.on_refused = [](const ucx::connection_end&) {};
  ucx::worker_options of_worker;
  of_worker.on_established = [](const ucx::endpoint&, const ucx::connection_report&) {};
  ucx::listener_options doors{
      .on_closed = [](const ucx::connection_end& end) { (void)end.error_message; }};
  const ucx::connection_refusal refusal{.reason = ec};
  (void)refusal;
  (void)doors;
}

void of_buffers(ucx::buffer_pool& pool, std::error_code& ec) { (void)pool.take(ec); }

void of_connections(ucx::worker& worker, ucx::connection_manager& manager,
                    ucx::listener::acceptance& accepted, std::error_code& ec) {
  const ucx::listener door(worker, ucx::socket_address(), ec);
  const ucx::endpoint peer(worker, "localhost", 7471);
  const ucx::peer_location where(door.address());
  manager.add("name", where, ec);
  (void)manager.wait_active("name", ec);
  (void)accepted.wait(ec);
  (void)ucx::resolve("localhost", 7471, ec);
}

void of_places(const ucx::context& context, ucx::server& server, std::span<std::byte> bytes,
               std::error_code& ec) {
  const auto granted = ucx::access::read;
  const ucx::memory_region exposed(context, bytes, granted, ec);
  const ucx::memory_region placed(context, bytes, granted, {ucx::memory_kind::host, -1});
  (void)ucx::memory_region::allocate(context, 1, granted, ec);
  (void)server.publish("name", bytes, granted, ec);
  (void)server.publish("name", bytes, granted, {.kind = ucx::memory_kind::host}, ec);
  (void)server.allocate("name", 1, granted, ec);
  server.unpublish("name");
}

void of_waits(ucx::request& awaited, std::error_code& ec) {
  const auto deadline = std::chrono::steady_clock::now();
  const std::span<const ucx::request> all(&awaited, 1);
  (void)awaited.wait_until(deadline, ec);
  (void)ucx::wait_any_until(all, deadline, ec);
  (void)ucx::wait_all_until(all, deadline, ec);
}

void of_counts(ucx::connection_manager& manager, ucx::remote_region& region,
               const ucx::memory_region& exposed) {
  (void)manager.count();
  (void)manager.count(ucx::connection_state::active);
  (void)ucx::buffer_pool().buffer_size();
  (void)ucx::socket_address().compare({});
  (void)ucx::tag_match::any().accepts(1);
  (void)ucx::progress_loop().rounds();
  (void)region.unconfirmed();
  (void)exposed.kind();
}

void of_types() {
  (void)sizeof(ucx::way);
  (void)sizeof(ucx::thread_safety);
  (void)sizeof(ucx::when_full);
  (void)sizeof(ucx::peer_failure);
  (void)sizeof(ucx::slow_reader);
  (void)sizeof(ucx::memory_file);
  (void)sizeof(ucx::memory_loan);
  (void)sizeof(ucx::memory_handle);
  (void)sizeof(ucx::message_id);
  (void)sizeof(ucx::opened_name);
  (void)sizeof(ucx::fetched_name);
  (void)sizeof(ucx::sealed_copy_options);
}

void of_enumerators() {
  (void)ucx::thread_mode::safe;
  (void)ucx::error_handling_mode::detected;
  (void)ucx::error_handling_mode::undetected;
  (void)ucx::creation::fresh;
  (void)ucx::errc::damaged_on_the_way;
  (void)ucx::errc::buffer_gone;
  (void)ucx::errc::store_gone;
  (void)ucx::errc::too_many_of_store;
  (void)ucx::errc::too_many_of_client;
}

void of_constants() {
  (void)ucx::pipe_options::least_window;
  (void)ucx::pipe_options::most_window;
  (void)ucx::pipe_options::most_peers;
  (void)ucx::stream_options::least_window;
  (void)ucx::stream_options::most_window;
  (void)ucx::stream_options::most_lanes;
  (void)ucx::server_options::most_workers;
  (void)ucx::url::longest_name;
}

void of_options_of_connections() {
  constexpr std::chrono::seconds second(1);
  const ucx::context_options of_context{.wins = ucx::precedence::environment};
  const ucx::adopted_context_options of_adopted{.segment = 1 << 13};
  const ucx::worker_options of_worker{.threads = ucx::thread_mode::multi};
  const ucx::endpoint_options of_endpoint{.failure = ucx::error_handling_mode::none};
  const ucx::listener_options of_listener{.awaited = true, .most_waiting = 1};
  const ucx::send_options of_send{.full = ucx::backpressure::fail};
  const ucx::message_handlers of_messages{.on_room = [] {}};
  const ucx::reconnect_options again{.longest_delay = second, .most_attempts = 3};
  const ucx::connection_manager_options of_manager{
      .failure = ucx::error_handling_mode::peer, .reconnect = again, .most_peers = 2};
  (void)of_context;
  (void)of_adopted;
  (void)of_worker;
  (void)of_endpoint;
  (void)of_listener;
  (void)of_send;
  (void)of_messages;
  (void)of_manager;
}

void of_options_of_streams() {
  constexpr std::chrono::seconds second(1);
  const ucx::stream_options of_stream{
      .depth = 2, .follow = second, .reconnect = second, .lanes = 1};
  const ucx::pipe_options of_pipe{.silence = second,
                                  .meeting = second,
                                  .slow = ucx::slow_reader_policy::drop,
                                  .patience = second};
  const ucx::pipe_broker_options of_broker{.most_waiting = 3};
  const ucx::store_options of_store{.largest_file = 1,
                                    .most_open_files = 1,
                                    .most_open_files_of_one_client = 1,
                                    .most_writers = 1};
  const ucx::server_options of_server{.most_clients = 1};
  const ucx::remote_region_options of_region{.way = ucx::transfer_method::message};
  const ucx::remote_file_options of_file{.make = ucx::creation::append};
  const ucx::copy_to_memfd_options of_copy{.most = 1};
  const ucx::memory_pool_options of_pool{.bound = 1};
  (void)of_stream;
  (void)of_pipe;
  (void)of_broker;
  (void)of_store;
  (void)of_server;
  (void)of_region;
  (void)of_file;
  (void)of_copy;
  (void)of_pool;
}

void of_reports(const ucx::connection_report& report, const ucx::memory_pool_usage& usage) {
  (void)report.segment;
  (void)report.largest_eager;
  (void)report.largest_header;
  (void)report.rma_is_real;
  (void)usage.bound;
  (void)ucx::worker_attributes().largest_header;
  (void)ucx::stream_statistics().bound;
  (void)ucx::stream_statistics().lanes;
  (void)ucx::staging_statistics().not_direct;
}

void of_functions(ucx::client& client, ucx::remote_region& region, ucx::endpoint& peer,
                  ucx::worker& worker, ucx::message& message) {
  (void)region.way();
  (void)region.limit();
  (void)region.measurable();
  (void)ucx::pipe_streambuf().way();
  (void)client.measure(region);
  ucx::client::linger(std::chrono::seconds(1));
  (void)peer.longest_header();
  (void)worker.next_deadline();
  (void)message.is_here();
  (void)ucx::scheduled_call().over();
  (void)ucx::url::is_meant_by("ucx:");
  (void)ucx::url::of_address_file("file");
  (void)ucx::transport_version();
  (void)ucx::open_each(client, {});
  (void)ucx::fetch_each(client, {}, 1);
  (void)ucx::store_each(client, {});
  (void)ucx::sealed_copy(client.server());
  (void)ucx::sealed_copy(region);
}

}  // namespace

/// Takes them all, so that no compiler leaves them out.
void call_old_names(ucx::client& client, ucx::remote_region& region, ucx::endpoint& peer,
                    ucx::worker& worker, ucx::memory_region& memory, ucx::message& message,
                    ucx::connection_manager& manager, ucx::listener::acceptance& accepted,
                    ucx::server& server, ucx::request& awaited, ucx::buffer_pool& pool,
                    std::span<std::byte> bytes) {
  std::error_code ec;
  of_clients(client, region, ec);
  of_listings({}, client);
  of_urls(client.server());
  of_regions(region, bytes, ec);
  of_feeds(region);
#if __has_include(<boost/iostreams/categories.hpp>)
  of_boost(region);
#endif
  of_atomics(region, ec);
  of_messages(peer, bytes, ec);
  of_sends(peer, bytes);
  of_receives(peer, worker, message);
  of_workers(worker, memory, message, bytes, ec);
  of_buffers(pool, ec);
  of_events(ec);
  of_connections(worker, manager, accepted, ec);
  of_places(worker.parent(), server, bytes, ec);
  of_waits(awaited, ec);
  of_counts(manager, region, memory);
  of_types();
  of_enumerators();
  of_constants();
  of_options_of_connections();
  of_options_of_streams();
  of_reports(peer.report(), {});
  of_functions(client, region, peer, worker, message);
}
