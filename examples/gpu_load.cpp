// A file that a peer serves, read straight into the memory of a GPU.
//   gpu_load URL          # ucxs://node7:7471/weights
#include <iostream>
#include <string>

#include <ucx/buffer.hpp>
#include <ucx/client.hpp>
#include <ucx/memory_resources.hpp>
#include <ucx/url.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gpu_load URL\n";
    return 2;
  }
  try {
    const ucx::url from(argv[1]);
    ucx::memory_pool gpu({ucx::memory_kind::cuda, 0}, {.max_size = std::size_t{8} << 30U});
    ucx::client client(from);
    ucx::remote_region file = client.open(from.name());
    ucx::buffer weights(gpu, file.size());
    file.read_at(0, weights.bytes());
    std::cout << weights.size() << " bytes are in device " << gpu.place().device << '\n';
    return 0;
  } catch (const ucx::error& failure) {
    std::cerr << "gpu_load: " << failure.what() << '\n';
    return failure.code() == ucx::errc::not_supported ? 77 : 1;  // 77: there is no GPU
  }
}
