// The names of std::execution that the senders use, and whose they are.
//
// They are the standard library's where it has them, else those of NVIDIA's stdexec where its
// headers are found. A program may choose others, before it includes <ucx/execution.hpp>:
//
//     #define UCXIO_EXECUTION_NAMES with_mine
//     namespace ucx::inline with_mine::execution {
//     using mine::set_value, ...;  // all names that are listed below for stdexec
//     }
//
// The senders live in `ucx::inline with_mine` then. So sources with different choices may be linked
// into one program.
#pragma once

#include <version>

#if defined(UCXIO_EXECUTION_NAMES)
// The program's own names have been declared.
#elif defined(__cpp_lib_senders)
#include <execution>
#include <stop_token>
#define UCXIO_EXECUTION_NAMES with_std
namespace ucx {
inline namespace with_std {
namespace execution {
using std::get_stop_token, std::stop_callback_for_t;
using namespace std::execution;
}  // namespace execution
}  // namespace with_std
}  // namespace ucx
#elif __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
#define UCXIO_EXECUTION_NAMES with_stdexec
namespace ucx {
inline namespace with_stdexec {
namespace execution {
using stdexec::completion_signatures, stdexec::completion_signatures_of_t;
using stdexec::connect, stdexec::start, stdexec::get_env;
using stdexec::forward_progress_guarantee, stdexec::get_forward_progress_guarantee_t;
using stdexec::get_stop_token, stdexec::stop_callback_for_t;
using stdexec::scheduler_tag, stdexec::get_scheduler_t, stdexec::get_completion_scheduler_t;
using stdexec::sender_tag, stdexec::receiver_tag, stdexec::operation_state_tag;
using stdexec::set_value, stdexec::set_error, stdexec::set_stopped;
using stdexec::set_value_t, stdexec::set_error_t, stdexec::set_stopped_t;
}  // namespace execution
}  // namespace with_stdexec
}  // namespace ucx
#else
#error "<ucx/execution.hpp> needs std::execution, stdexec, or names: see <ucx/execution_names.hpp>"
#endif
