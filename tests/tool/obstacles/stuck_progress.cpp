// Loaded before UCX: a call of it that makes progress never returns. Stands for UCX as it looks for
// memory that it does not get.
#include <unistd.h>

extern "C" unsigned ucp_worker_progress(void*) {
  for (;;) ::pause();
}
