#include "shared_view.hpp"

#include <string>
#include <utility>

#include "without_gil.hpp"

namespace ucxio_python {

namespace nb = nanobind;

class shared_view {
 public:
  shared_view(std::span<std::byte> bytes, bool writable, std::shared_ptr<void> owner,
              lent_memory& count)
      : bytes_(bytes), writable_(writable), owner_(std::move(owner)), count_(count) {
    ++count_.buffers_;  // before anything of Python's can run
  }
  shared_view(const shared_view&) = delete;
  shared_view& operator=(const shared_view&) = delete;
  ~shared_view() {
    --count_.buffers_;
    // It may be the last owner, and let go of a region.
    const without_gil free;
    owner_.reset();
  }

  static int get(PyObject* self, Py_buffer* view, int flags) {
    shared_view& of = *nb::inst_ptr<shared_view>(nb::handle(self));
    const int failed =
        PyBuffer_FillInfo(view, self, of.bytes_.data(), static_cast<Py_ssize_t>(of.bytes_.size()),
                          of.writable_ ? 0 : 1, flags);
    if (failed == 0) ++of.count_.buffers_;
    return failed;
  }
  static void release(PyObject* self, Py_buffer*) {
    --nb::inst_ptr<shared_view>(nb::handle(self))->count_.buffers_;
  }

 private:
  std::span<std::byte> bytes_;
  bool writable_;
  std::shared_ptr<void> owner_;
  lent_memory& count_;
};

void lent_memory::refuse_if_lent(const char* doing) const {
  if (!is_lent()) return;
  throw nb::buffer_error((std::string(doing) + " while memoryviews of its memory exist").c_str());
}

nb::object make_memoryview(std::span<std::byte> bytes, bool writable, std::shared_ptr<void> owner,
                           lent_memory& count) {
  const nb::object made = nb::cast(new shared_view(bytes, writable, std::move(owner), count),
                                   nb::rv_policy::take_ownership);
  return nb::steal(PyMemoryView_FromObject(made.ptr()));
}

void add_shared_view(nb::module_& module) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(&shared_view::get)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(&shared_view::release)},
      {0, nullptr}};
  nb::class_<shared_view>(module, "SharedView", nb::type_slots(slots));
}

}  // namespace ucxio_python
