// Writes a checkpoint into a pipe, tensor by tensor, while another thread (in life: another node)
// reads it: nothing is stored on the way, and the reader knows whether it has all of it.
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <ucx/pipe_broker.hpp>
#include <ucx/pipe_stream.hpp>
#include <ucx/server.hpp>
#include <vector>

namespace {

constexpr int tensors = 8;
constexpr std::size_t elements = 1 << 18;

void read_checkpoint(const std::string& url) {
  ucx::ipipestream in(url);
  std::vector<float> tensor;
  std::string name;
  for (std::uint64_t count = 0; in >> name >> count && in.get() == '\n';) {
    tensor.resize(count);
    in.read(reinterpret_cast<char*>(tensor.data()),
            static_cast<std::streamsize>(count * sizeof(float)));
    std::cout << name << ": " << count << " elements, the last " << tensor.back() << '\n';
  }
  if (in.bad() || !in.eof()) std::cerr << "cut off: " << in.error_message() << '\n';
}

}  // namespace

int main() {
  ucx::server server;  // on 127.0.0.1; the bytes do not go through it
  const ucx::pipe_broker broker(server);
  const std::string url = server.url("checkpoint");
  std::jthread reader(read_checkpoint, url);

  ucx::opipestream out(url);
  for (int i = 0; i < tensors; ++i) {
    const std::vector<float> tensor(elements, static_cast<float>(i));
    out << "layer" << i << ' ' << tensor.size() << '\n';
    out.write(reinterpret_cast<const char*>(tensor.data()),
              static_cast<std::streamsize>(tensor.size() * sizeof(float)));
  }
  out.close();  // the reader's process has everything, or this failed
  if (!out) {
    std::cerr << out.error_message() << '\n';
    return 1;
  }
}
