// A buffer in the memory of a GPU that one process publishes, and another one reads into the memory
// of its own. Nothing of it is built with CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <ucx/buffer.hpp>
#include <ucx/client.hpp>
#include <ucx/memory_resources.hpp>
#include <ucx/server.hpp>

constexpr std::size_t size = std::size_t{16} << 20U;

int read_tensor(const char* url, ucx::memory_pool& gpu) {
  ucx::buffer mine(gpu, size);
  ucx::client client(url);
  client.open("tensor").read_at(0, mine.bytes());  // from GPU to GPU
  std::vector<char> seen(size);
  ucx::copy_memory(seen.data(), mine.data(), size);
  return std::all_of(seen.begin(), seen.end(), [](char each) { return each == 'x'; }) ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    ucx::memory_pool gpu({ucx::memory_kind::cuda, 0});
    if (argc == 2) return read_tensor(argv[1], gpu);
    ucx::buffer tensor(gpu, size);
    ucx::copy_memory(tensor.data(), std::vector<char>(size, 'x').data(), size);

    // From GPU to GPU at once: by TLS, as by default, the bytes would go through the host's memory.
    ucx::server server({.context = {.transports = {"ucx"}}});
    const auto published = server.publish("tensor", tensor.bytes(), ucx::access::read);
    const std::string url = server.url();
    if (fork() == 0) _exit(execl("/proc/self/exe", *argv, url.c_str(), nullptr));
    int status = 0;
    wait(&status);
    std::cout << size << " bytes, " << (status == 0 ? "all of them there\n" : "not all there\n");
    return status != 0;
  } catch (const ucx::error& failure) {
    std::cerr << "gpu_to_gpu: " << failure.what() << '\n';
    return failure.code() == ucx::errc::not_supported ? 77 : 1;  // 77: there is no GPU
  }
}
