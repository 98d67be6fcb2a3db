#include "loop_operation.hpp"

#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <ucx/error.hpp>

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// What an operation keeps that goes on without its object. The buffers go last.
struct kept_by_operation {
  std::optional<left_behind> lent;
  std::shared_ptr<void> target;
};

/// The function that makes a result. What it owns goes without the GIL: maybe the last handle of a
/// connection.
struct used_once {
  loop_operation::result_function of;
  ~used_once() {
    if (!of) return;
    const without_gil free;
    of = nullptr;
  }
};

}  // namespace

loop_operation::loop_operation(std::shared_ptr<loop_worker> over, borrowed&& lent,
                               std::shared_ptr<void> target, result_function result,
                               ucx::request going)
    : over_(std::move(over)),
      number_(over_->next_number()),
      lent_(std::move(lent)),
      target_(std::move(target)),
      result_(std::move(result)),
      going_(std::move(going)) {
  if (going_.done()) return;
  const without_gil free;
  going_.then([ended = over_->ended(), number = number_](std::error_code) { ended->add(number); });
}

loop_operation::~loop_operation() {
  if (!over_) return;  // it was moved from
  if (going_.done() || ucx::is_forked_child()) {
    const without_gil free;
    result_ = nullptr;
    going_ = {};
    target_.reset();
    over_.reset();
    return;
  }
  // What could not be handed over stays here until the request is gone.
  std::shared_ptr<kept_by_operation> kept;
  try {
    kept = std::make_shared<kept_by_operation>();
    kept->lent.emplace(std::move(lent_));
    kept->target = target_;
  } catch (const std::bad_alloc&) {
    kept.reset();
  }
  const without_gil free;
  going_.cancel();
  try {
    if (kept) going_.orphan(kept);
  } catch (const std::bad_alloc&) {  // it waits instead
  }
  going_ = {};
  kept.reset();
  target_.reset();
  over_->wake();
  result_ = nullptr;  // maybe the last handle of the client
  over_.reset();
}

void loop_operation::cancel() {
  refuse_forked_child();
  const without_gil free;
  going_.cancel();
  over_->wake();
}

nb::object loop_operation::result() {
  refuse_forked_child();
  if (!going_.done()) throw ucx::error(ucx::errc::busy, "the operation has not ended");
  const used_once made_by{std::exchange(result_, nullptr)};
  if (!made_by.of) throw ucx::error(ucx::errc::closed, "the result was taken, or dropped");
  if (going_.error()) {
    lent_ = {};
    going_.wait();
  }
  const nb::object made = made_by.of(going_);
  lent_ = {};
  return made;
}

void loop_operation::release() {
  if (!going_.done()) throw ucx::error(ucx::errc::busy, "the operation has not ended");
  lent_ = {};
  const without_gil free;
  result_ = nullptr;
  target_.reset();
  // What was opened is given back.
  over_->wake();
}

void add_loop_operation(nb::module_& module) {
  using object = loop_operation;
  nb::class_<object>(module, "Operation")
      .def_prop_ro("done", &object::is_done)
      .def_prop_ro("number", &object::number)
      .def("cancel", &object::cancel)
      .def("result", &object::result)
      .def("release", &object::release);
}

}  // namespace ucxio_python
