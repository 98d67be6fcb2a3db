// Loaded before UCX: a call of it that ends a listener never returns. Stands for a server that
// takes long to end: its disk hangs, or clients that it waits for are stopped.
#include <unistd.h>

extern "C" void ucp_listener_destroy(void*) {
  for (;;) ::pause();
}
