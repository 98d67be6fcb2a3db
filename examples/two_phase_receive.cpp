// Receives in two steps: the header first, which tells where the payload belongs; then the payload,
// straight to that place. Nothing is copied on the way, and nothing is allocated for it.
#include <cstring>
#include <iostream>
#include <vector>

#include <ucx/endpoint.hpp>

// TCP on the loopback interface: nobody outside this machine can connect.
ucx::context loopback() { return ucx::context({.transports = {"tcp"}, .devices = {"lo"}}); }

constexpr std::size_t rows = 16;
constexpr std::size_t columns = 100'000;

int main() {
  // The receiver: a matrix, whose rows come in any order.
  std::vector<double> matrix(rows * columns);
  std::vector<ucx::request> receives;
  const ucx::context receiver_context = loopback();
  ucx::worker receiver(receiver_context);
  receiver.on_message(1, [&](ucx::message came) {
    std::uint64_t row = 0;
    if (came.header().size() != sizeof row) return;  // the message dies: its sender is told
    std::memcpy(&row, came.header().data(), sizeof row);
    if (row >= rows || came.length() != columns * sizeof(double)) return;
    const std::span place(matrix.data() + row * columns, columns);
    receives.push_back(came.start_receive(std::as_writable_bytes(place)));
  });

  // The sender, with a thread of its own that makes the progress.
  const ucx::context context = loopback();
  const ucx::worker sender(context, {.progress = ucx::progress_mode::sleeping_thread});
  ucx::endpoint peer(sender, receiver.address());
  std::vector<std::vector<double>> sent;
  std::vector<ucx::request> sends;
  for (std::uint64_t row = rows; row-- > 0;) {
    sent.emplace_back(columns, static_cast<double>(row));
    sends.push_back(peer.start_send(ucx::active_message{1, std::as_bytes(std::span(&row, 1))},
                                    std::as_bytes(std::span(sent.back()))));
  }

  while (receives.size() < rows && !peer.status()) receiver.progress();
  for (ucx::request& each : receives) each.wait();
  for (ucx::request& each : sends) each.wait();
  peer.close(ucx::close_mode::abort);  // the receiver makes no more progress: it would not answer
  bool good = true;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    good = good && matrix[i] == static_cast<double>(i / columns);
  }
  std::cout << receives.size() << " rows, " << (good ? "each in its place\n" : "some misplaced\n");
  return good ? 0 : 1;
}
