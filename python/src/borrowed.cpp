#include "borrowed.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// Sets that nobody uses any more, and that wait for a thread with the GIL.
struct unused_sets {
  std::mutex lock;
  std::vector<std::unique_ptr<borrowed>> sets;
  std::atomic<std::size_t> left = 0;
  bool is_asked_for = false;
  bool is_over = false;
};

// Never destroyed: threads of the library may outlive the static objects.
unused_sets& unused() {
  static auto* const made = new unused_sets();
  return *made;
}

int give_back_when_called(void*) {
  give_back();
  return 0;
}

std::string listed(const Py_ssize_t* numbers, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text + (count == 1 ? ",)" : ")");
}

std::string type_of(nb::handle object) { return nb::str(object.type().attr("__name__")).c_str(); }

[[noreturn]] void refuse_read_only(nb::handle object) {
  const std::string text =
      "a writable buffer is needed, and this " + type_of(object) + " is read-only";
  throw nb::type_error(text.c_str());
}

[[noreturn]] void refuse(nb::handle object, use wanted) {
  PyErr_Clear();
  const bool reads = wanted == use::read;
  Py_buffer view;
  // Only to tell why: as it can be had for reading, it is read-only.
  const bool has_buffer = PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) == 0;
  if (has_buffer) PyBuffer_Release(&view);
  PyErr_Clear();
  if (has_buffer && !reads) refuse_read_only(object);
  throw nb::type_error(("an object with a buffer is needed, not " + type_of(object)).c_str());
}

/// Returns whether items of this format have references to objects.
bool has_objects(const char* format) {
  if (format == nullptr) return false;
  bool in_name = false;  // ":name:"
  for (const char* c = format; *c != '\0'; ++c) {
    if (*c == ':') in_name = !in_name;
    if (*c == 'O' && !in_name) return true;
  }
  return false;
}

/// Takes a view with its format or, where there is none (NumPy has none for dates), without.
/// Returns whether there is one.
bool take_view(nb::handle object, use wanted, Py_buffer& view) {
  const int flags = PyBUF_STRIDES | (wanted == use::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &view, flags | PyBUF_FORMAT) == 0) {
    if (!has_objects(view.format)) return true;
    PyBuffer_Release(&view);
    throw nb::type_error("the items of the buffer are references to objects");
  }
  PyErr_Clear();
  const nb::object type = nb::getattr(object, "dtype", nb::none());
  if (nb::cast<bool>(nb::bool_(nb::getattr(type, "hasobject", nb::bool_(false))))) {
    throw nb::type_error("the items of the buffer are references to objects");
  }
  return PyObject_GetBuffer(object.ptr(), &view, flags) == 0;
}

}  // namespace

void borrowed::releaser::operator()(Py_buffer* view) const noexcept {
  PyBuffer_Release(view);
  delete view;
}

std::span<std::byte> borrowed::take_foreign(nb::handle object, foreign_memory&& found, use wanted) {
  if (found.is_read_only && wanted == use::write) refuse_read_only(object);
  if (found.stream != nullptr && stream_ != nullptr && found.stream != stream_) {
    throw nb::value_error("the buffers of one operation are used on different streams");
  }
  if (found.stream != nullptr) stream_ = found.stream;
  take(std::move(found.owner));
  return found.bytes;
}

std::span<std::byte> borrowed::take_buffer(nb::handle object, use wanted) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    if (auto found = cuda_array_of(object)) return take_foreign(object, std::move(*found), wanted);
    if (auto found = dlpack_of(object)) return take_foreign(object, std::move(*found), wanted);
  }
  auto made = std::make_unique<Py_buffer>();
  if (!take_view(object, wanted, *made)) refuse(object, wanted);
  views_.emplace_back(made.release());
  const Py_buffer& view = *views_.back();
  if (PyBuffer_IsContiguous(&view, 'C') == 0) {
    const std::string text = "a C-contiguous buffer is needed; this " + type_of(object) +
                             " has shape " + listed(view.shape, view.ndim) + " and strides " +
                             listed(view.strides, view.ndim);
    throw nb::value_error(text.c_str());
  }
  return {static_cast<std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
}

left_behind::left_behind(borrowed&& kept) : kept_(std::make_unique<borrowed>(std::move(kept))) {
  ++unused().left;
}

left_behind::~left_behind() {
  if (!kept_) return;
  unused_sets& all = unused();
  const std::lock_guard guard(all.lock);
  // Nobody can give it back any more: it goes with the process.
  if (all.is_over) {
    static_cast<void>(kept_.release());
    return;
  }
  all.sets.push_back(std::move(kept_));
  // Refused where too many calls wait: then the next call of ours does it.
  if (!all.is_asked_for) all.is_asked_for = Py_AddPendingCall(&give_back_when_called, nullptr) == 0;
}

void give_back() noexcept {
  std::vector<std::unique_ptr<borrowed>> found;
  {
    unused_sets& all = unused();
    const std::lock_guard guard(all.lock);
    all.is_asked_for = false;
    found.swap(all.sets);
  }
  // Such as a worker, whose end waits for its thread.
  for (std::unique_ptr<borrowed>& each : found) {
    std::vector<std::shared_ptr<void>> values = std::move(each->values_);
    each.reset();
    if (values.empty()) continue;
    const without_gil free;
    values.clear();
  }
  unused().left -= found.size();
}

std::size_t count_left_behind() noexcept { return unused().left; }

void stop_giving_back() noexcept {
  give_back();
  const std::lock_guard guard(unused().lock);
  unused().is_over = true;
}

}  // namespace ucxio_python
