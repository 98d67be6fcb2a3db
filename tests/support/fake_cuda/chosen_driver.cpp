// The program that this is linked into uses the pretended driver: chosen before anything of the
// library's looks for one.
#include <cstdlib>

namespace {

[[maybe_unused]] const int chosen = ::setenv("UCXIO_CUDA_DRIVER", FAKE_CUDA, 1);

}  // namespace
