#include "call_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <ucx/context.hpp>
#include <ucx/error.hpp>

#include "call_values.hpp"
#include "enumerators.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

int make_event_fd() {
  const int made = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (made < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return made;
}

/// What a function raised: its text says it all.
class raised : public std::system_error {
 public:
  raised(std::error_code code, std::string text)
      : std::system_error(code), text_(std::make_shared<const std::string>(std::move(text))) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;  // copying an exception throws nothing
};

/// Returns whether an answer would come too late.
bool is_given_up(const waiting_call& call) {
  return call.stop.stop_requested() ||
         (call.deadline && *call.deadline <= std::chrono::steady_clock::now());
}

/// Lets go of what answers calls when it goes. In a child of `fork()` it stays: the parent answers.
template <class Value>
void let_go(std::shared_ptr<Value>& of) noexcept {
  if (!of) return;
  if (ucx::is_forked_child()) {
    static_cast<void>(new std::shared_ptr<Value>(std::move(of)));
    return;
  }
  const without_gil free;
  of.reset();
}

}  // namespace

call_queue::call_queue() : event_fd_(make_event_fd()) {}

call_queue::~call_queue() { ::close(event_fd_); }

void call_queue::tell() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_fd_, &one, sizeof one) == sizeof one);
  changed_.notify_one();
}

void call_queue::defer(std::uint64_t function, const call_types& types, ucx::call_context& context,
                       ucx::call_reader& arguments) {
  ucx::call_writer kept;
  copy_arguments(types, arguments, kept);
  const std::span<const std::byte> bytes = kept.written();
  auto made = std::make_shared<waiting_call>();
  made->function = function;
  made->arguments.assign(bytes.begin(), bytes.end());
  made->identity = to_string(context.identity);
  made->deadline = context.deadline;
  {
    const std::lock_guard guard(lock_);
    if (is_closed_) throw ucx::error(ucx::errc::canceled, "the function is served no more");
    made->id = ++last_id_;
  }
  made->later = context.defer();
  made->stop = made->later.context().stop;
  const auto give_up = [queue = weak_from_this(), id = made->id] {
    if (const auto here = queue.lock()) here->give_up(id);
  };
  made->told.emplace(made->stop, give_up);
  waiting_calls gone;  // without the lock
  const std::lock_guard guard(lock_);
  gone.swap(left_);
  // The call goes, and fails. One that is given up from here on is found among the others.
  if (is_closed_ || made->stop.stop_requested()) return;
  calls_.push_back(std::move(made));
  tell();
}

/// A handler of the call's own: it is in `told`, which goes later.
void call_queue::give_up(std::uint64_t id) noexcept {
  std::vector<std::byte> arguments;  // without the lock
  const std::lock_guard guard(lock_);
  if (is_closed_) return;
  const auto found =
      std::find_if(calls_.begin(), calls_.end(), [id](const auto& each) { return each->id == id; });
  if (found == calls_.end()) {
    given_up_.push_back(id);
    return tell();
  }
  arguments.swap((*found)->arguments);
  left_.splice(left_.end(), calls_, found);
  tell();
}

std::shared_ptr<waiting_call> call_queue::wait() {
  while (true) {
    waiting_calls gone;  // without the lock
    std::shared_ptr<waiting_call> first;
    std::unique_lock guard(lock_);
    changed_.wait(guard, [this] { return is_closed_ || !calls_.empty() || !left_.empty(); });
    gone.swap(left_);
    given_up_.clear();
    if (is_closed_) return nullptr;
    if (calls_.empty()) continue;
    first = std::move(calls_.front());
    calls_.pop_front();
    if (!is_given_up(*first)) return first;
  }
}

std::pair<call_queue::waiting_calls, std::vector<std::uint64_t>> call_queue::take_all() {
  std::uint64_t told = 0;
  static_cast<void>(::read(event_fd_, &told, sizeof told) == sizeof told);
  waiting_calls gone;  // without the lock
  const std::lock_guard guard(lock_);
  gone.swap(left_);
  for (auto at = calls_.begin(); at != calls_.end();) {
    const auto each = at++;
    if (is_given_up(**each)) gone.splice(gone.end(), calls_, each);
  }
  return {std::exchange(calls_, {}), std::exchange(given_up_, {})};
}

std::size_t call_queue::waiting() const {
  const std::lock_guard guard(lock_);
  return calls_.size();
}

bool call_queue::is_closed() const {
  const std::lock_guard guard(lock_);
  return is_closed_;
}

void call_queue::close() {
  waiting_calls dropped;  // without the lock
  waiting_calls gone;
  {
    const std::lock_guard guard(lock_);
    is_closed_ = true;
    dropped.swap(calls_);
    gone.swap(left_);
    tell();
  }
  changed_.notify_all();
}

call_object::~call_object() { let_go(of_); }

std::optional<double> call_object::remaining() const {
  if (!of_->deadline) return std::nullopt;
  const auto left = *of_->deadline - std::chrono::steady_clock::now();
  return std::max(0.0, std::chrono::duration<double>(left).count());
}

nb::object call_object::arguments(const call_form& form) const {
  return read_arguments(form, ucx::call_reader(of_->arguments));
}

void call_object::answer(const call_form& form, nb::handle result) {
  if (ucx::is_forked_child()) return;
  ucx::call_writer written;
  write_result(form, result, written);
  const without_gil free;
  of_->told.reset();
  std::exchange(of_->later, {}).send(written);
}

void call_object::fail(const std::string& text, const std::string& code, int number) {
  if (ucx::is_forked_child()) return;
  std::error_code cause;
  if (!code.empty()) {
    cause = make_error_code(value_of<ucx::errc>(code, "error"));
  } else if (number > 0) {
    cause = std::error_code(number, std::generic_category());
  }
  const std::exception_ptr thrown = std::make_exception_ptr(raised(cause, text));
  const without_gil free;
  of_->told.reset();
  std::exchange(of_->later, {}).fail(thrown);
}

call_queue_object::~call_queue_object() { let_go(of_); }

nb::object call_queue_object::take() {
  std::shared_ptr<waiting_call> found;
  {
    const without_gil free;
    found = of_->wait();
  }
  return found ? nb::cast(call_object(std::move(found))) : nb::none();
}

nb::tuple call_queue_object::take_all() {
  auto found = [this] {
    const without_gil free;
    return of_->take_all();
  }();
  nb::list calls;
  for (auto& each : found.first) calls.append(nb::cast(call_object(std::move(each))));
  nb::list given_up;
  for (const std::uint64_t id : found.second) given_up.append(id);
  return nb::make_tuple(calls, given_up);
}

void call_queue_object::close() {
  if (ucx::is_forked_child()) return;
  const without_gil free;
  of_->close();
}

void add_call_queue(nb::module_& module) {
  using call = call_object;
  using queue = call_queue_object;
  nb::class_<call>(module, "Call")
      .def_prop_ro("id", &call::id)
      .def_prop_ro("function", &call::function)
      .def_prop_ro("identity", &call::identity)
      .def_prop_ro("remaining", &call::remaining)
      .def_prop_ro("is_given_up", &call::is_given_up)
      .def("arguments", &call::arguments, nb::arg("form"))
      .def("answer", &call::answer, nb::arg("form"), nb::arg("result").none())
      .def("fail", &call::fail, nb::arg("text"), nb::arg("code"), nb::arg("number"));
  nb::class_<queue>(module, "CallQueue")
      .def(nb::init<>())
      .def_prop_ro("event_fd", &queue::event_fd)
      .def_prop_ro("is_closed", &queue::is_closed)
      .def_prop_ro("waiting", &queue::waiting)
      .def("take", &queue::take)
      .def("take_all", &queue::take_all)
      .def("close", &queue::close);
}

}  // namespace ucxio_python
