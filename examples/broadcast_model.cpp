// One writer sends a model to three readers at once, and drops who holds the others up.
#include <iostream>
#include <string>
#include <thread>
#include <ucx/pipe_broker.hpp>
#include <ucx/pipe_stream.hpp>
#include <ucx/server.hpp>
#include <vector>

namespace {

void read_model(const std::string& url) {
  ucx::ipipestream in(url);
  std::vector<char> piece(1 << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
  }
  if (in.bad()) std::cerr << in.error_message() << '\n';
}

}  // namespace

int main() {
  ucx::server server;
  const ucx::pipe_broker broker(server);
  const std::string url = server.url("model");
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) readers.emplace_back(read_model, url);

  const std::string model(32 << 20, 'm');
  ucx::opipestream out(url, {.readers = 3, .slow_reader = ucx::slow_reader_policy::drop});
  out << model;
  const std::size_t there = out.rdbuf()->readers();
  out.close();
  std::cout << model.size() << " bytes to " << there << " readers\n";
  return out && there == 3 ? 0 : 1;
}
