// SPDX-License-Identifier: BSD-3-Clause
//
// The module perdure._api: perdure.h and perdure_mpi.h for Python. python/perdure/api is what
// programs use.
#include <nanobind/nanobind.h>

#include "api/pool.hpp"

namespace nb = nanobind;

namespace {

// Raises the class of perdure.api.errors that belongs to the code.
void raise(const perdure::python::Failure& failure) {
  nb::object errors = nb::module_::import_("perdure.api.errors");
  nb::object error = errors.attr("error_of")(failure.code, nb::bytes(failure.sentence.c_str()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

}  // namespace

NB_MODULE(_api, api) {
  nb::set_leak_warnings(false);  // a pool that nobody closed is allowed
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const perdure::python::Failure& failure) {
      raise(failure);
    }
  });
  api.attr("version") = perdure_library_version();
  perdure::python::bind_memory(api);
  perdure::python::bind_pool(api);
  perdure::python::bind_windows(api);
}
