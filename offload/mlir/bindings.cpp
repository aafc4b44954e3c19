//===- bindings.cpp - The Python module offload.mlir._native --------------===//
//
// Everything that takes long releases the interpreter lock. A Failure becomes the Python exception
// offload.mlir._native.Failure with args (message, diagnostics), a diagnostic being the tuple
// (severity, message, file, line, column, notes).
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm_module.h"
#include "crash_notes.h"
#include "input/ready_images.h"
#include "pass_watch.h"
#include "program.h"
#include "session.h"
#include "tensors/tensors.h"

#include "llvm/Config/llvm-config.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

namespace py = pybind11;
using namespace offload;

using NoGil = py::call_guard<py::gil_scoped_release>;
using File = std::filesystem::path; // whose name may have bytes that are no UTF-8, unlike a std::string's

/// A message; names of files and strings of programs, which it may quote, have any bytes.
static py::str readable(const std::string &text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
}

static py::tuple toPython(const Diagnostic &diagnostic) {
  py::list notes;
  for (const Diagnostic &note : diagnostic.notes)
    notes.append(toPython(note));
  return py::make_tuple(diagnostic.severity, readable(diagnostic.message), readable(diagnostic.file),
                        diagnostic.line, diagnostic.column, notes);
}

static py::list toPython(const std::vector<Diagnostic> &diagnostics) {
  py::list result;
  for (const Diagnostic &diagnostic : diagnostics)
    result.append(toPython(diagnostic));
  return result;
}

PYBIND11_MODULE(_native, m) {
  m.doc() = "MLIR and LLVM 22 in this process: parsing, passes, code generation, linking.";
  m.attr("llvm_version") = LLVM_VERSION_STRING;
  m.attr("offload_version") = OFFLOAD_VERSION;

  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> failure;
  failure.call_once_and_store_result([&]() -> py::object { return py::exception<Failure>(m, "Failure"); });
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer)
        std::rethrow_exception(pointer);
    } catch (const Failure &error) {
      PyErr_SetObject(failure.get_stored().ptr(),
                      py::make_tuple(readable(error.what()), toPython(error.diagnostics)).ptr());
    }
  });

  py::class_<CrashNote>(m, "CrashNote").def(py::init<std::string>(), py::arg("text"));
  m.def("watch_crashes", &watchCrashes);
  m.def("take_pass_times", &takePassTimes);

  py::class_<Session, std::shared_ptr<Session>>(m, "Session")
      .def(py::init<>(), NoGil())
      .def("operations_of", &Session::operationsOf, py::arg("dialect"))
      .def(
          "parse",
          [](std::shared_ptr<Session> self, const py::bytes &data, const std::string &filename, bool alone) {
            std::string text = data;
            py::gil_scoped_release release;
            return IRModule::parse(self, text, filename, alone);
          },
          py::arg("data"), py::arg("filename"), py::arg("alone") = true);

  py::class_<IRModule, std::shared_ptr<IRModule>>(m, "Module")
      .def(
          "run",
          [](IRModule &self, const std::string &pipeline, bool verifyEach, const File &reproducer) {
            self.run(pipeline, verifyEach, reproducer.string());
          },
          py::arg("pipeline"), py::arg("verify_each") = false, py::arg("reproducer") = "", NoGil())
      .def("take_warnings",
           [](IRModule &self) {
             std::vector<Diagnostic> found = self.session->takeDiagnostics();
             llvm::erase_if(found, [](const Diagnostic &each) {
               return each.severity != "warning" && each.severity != "remark"; // of a schedule
             });
             return toPython(found);
           })
      .def("text", &IRModule::text, py::arg("locations") = false, py::arg("generic") = false, NoGil())
      .def("operation_names", &IRModule::operationNames)
      .def("has_tensors", [](const IRModule &module) { return hasTensors(module.get()); })
      .def("signatures", &signatures)
      .def("join", &join, py::arg("others"))
      .def("exported_symbols", &exportedSymbols)
      .def("device_modules", &deviceModules)
      .def("attached_targets",
           [](const IRModule &self) {
             py::list result;
             for (const AttachedTargets &each : attachedTargets(self))
               result.append(py::make_tuple(each.module, toPython(each.position), each.targets));
             return result;
           })
      .def("kernels_of", &kernelsOf, py::arg("name"))
      .def("may_hold_ready_objects", &mayHoldReadyObjects)
      .def("take_ready_objects", &takeReadyObjects, py::arg("annotations"))
      .def(
          "launches_of",
          [](const IRModule &self, const std::string &name) {
            py::list result;
            for (const LaunchSite &site : launchesOf(self, name))
              result.append(py::make_tuple(site.kernel, toPython(site.position)));
            return result;
          },
          py::arg("name"))
      .def("note_parameters", &noteParameters, py::arg("name"), py::arg("kernel"), py::arg("bytes"),
           py::arg("image"), py::arg("bare"))
      .def(
          "position_of",
          [](const IRModule &self, const std::string &name) { return toPython(positionOf(self, name)); },
          py::arg("name"))
      .def("has_source", &hasSource, py::arg("name"))
      .def("device_module", &deviceModule, py::arg("name"), py::arg("attributes") = "", NoGil())
      .def("set_kernel_attribute", &setKernelAttribute, py::arg("name"), py::arg("value"),
           py::arg("unless") = std::vector<std::string>())
      .def("set_kernel_threads", &setKernelThreads, py::arg("name"), py::arg("blocks"), py::arg("unless"))
      .def("limit_threads", &limitThreads, py::arg("most"), py::arg("blocks"))
      .def("check_bare_pointers", &checkBarePointers)
      .def("check_declared", &checkDeclared, py::arg("bare"), py::arg("defined"))
      .def("check_narrow_index", &checkNarrowIndex)
      .def("host_module", &hostModule, NoGil());

  py::class_<ReadyObject>(m, "ReadyObject")
      .def_readonly("module", &ReadyObject::module)
      .def_property_readonly("position", [](const ReadyObject &self) { return toPython(self.position); })
      .def_readonly("target", &ReadyObject::target)
      .def_readonly("annotation", &ReadyObject::annotation)
      .def_readonly("format", &ReadyObject::format)
      .def_property_readonly("data", [](const ReadyObject &self) { return py::bytes(self.data); })
      .def_readonly("kernels", &ReadyObject::kernels)
      .def_readonly("jit_level", &ReadyObject::jitLevel);

  py::class_<MachineOptions>(m, "MachineOptions")
      .def(py::init([](std::string triple, std::string cpu, std::string features, int level, bool fastMath) {
             if (level < 0 || level > 3)
               throw py::value_error("level must be 0 to 3");
             return MachineOptions{triple, cpu, features, level, fastMath};
           }),
           py::arg("triple"), py::arg("cpu") = "", py::arg("features") = "", py::arg("level") = 3,
           py::arg("fast_math") = false);

  py::class_<LLVMModule, std::shared_ptr<LLVMModule>>(m, "LLVMModule")
      .def_static("translate", &LLVMModule::translate, py::arg("module"), py::arg("options"), NoGil())
      .def("text", &LLVMModule::text, NoGil())
      .def("bitcode", [](LLVMModule &self) { return py::bytes(self.bitcode()); })
      .def("add_function_attribute", &LLVMModule::addFunctionAttribute, py::arg("name"), py::arg("value"))
      .def("add_module_flag", &LLVMModule::addModuleFlag, py::arg("name"), py::arg("value"))
      .def("define_constant", &LLVMModule::defineConstant, py::arg("name"), py::arg("bits"), py::arg("value"),
           py::arg("address_space"))
      .def("answer_reflection", &LLVMModule::answerReflection, py::arg("property"), py::arg("value"))
      .def(
          "link_needed", [](LLVMModule &self, const File &path) { self.linkNeeded(path.string()); },
          py::arg("path"), NoGil())
      .def(
          "link_library", [](LLVMModule &self, const File &path) { self.linkLibrary(path.string()); },
          py::arg("path"), NoGil())
      .def(
          "library_of",
          [](LLVMModule &self, const std::string &name) { return std::optional<File>(self.libraryOf(name)); },
          py::arg("name"))
      .def("set_debug_folder", &LLVMModule::setDebugFolder, py::arg("path"))
      .def("undefined_functions", &LLVMModule::undefinedFunctions)
      .def("undefined_variables", &LLVMModule::undefinedVariables)
      .def("drop_unseen_loading", &LLVMModule::dropUnseenLoading)
      .def("functions_of_loading", &LLVMModule::functionsOfLoading)
      .def("position_of",
           [](LLVMModule &self, const std::string &name) { return toPython(self.positionOf(name)); })
      .def("internalize", &LLVMModule::internalize, py::arg("kept"))
      .def("internalize_functions", &LLVMModule::internalizeFunctions, py::arg("kept"))
      .def("use_vector_math", &LLVMModule::useVectorMath, NoGil())
      .def(
          "lower_kernels_for_host",
          [](LLVMModule &self, const std::vector<std::string> &kernels, const ThreadLimits &limits,
             bool coroutines,
             uint32_t warpSize) { self.lowerKernelsForHost(kernels, limits, {coroutines, warpSize}); },
          py::arg("kernels"), py::arg("limits") = ThreadLimits(), py::arg("coroutines") = false,
          py::arg("warp_size") = 32, NoGil())
      .def("host_resources", &LLVMModule::hostResources)
      .def("optimize", &LLVMModule::optimize, NoGil())
      .def(
          "emit",
          [](LLVMModule &self, bool assembly) {
            std::string code;
            {
              py::gil_scoped_release release;
              code = self.emit(assembly);
            }
            return py::bytes(code);
          },
          py::arg("assembly"))
      .def("emit_objects",
           [](LLVMModule &self) {
             std::vector<std::string> objects;
             {
               py::gil_scoped_release release;
               objects = self.emitObjects();
             }
             return std::vector<py::bytes>(objects.begin(), objects.end());
           })
      .def("emit_with_lines", [](LLVMModule &self) { return py::bytes(self.emitWithLines()); });

  m.def("check_bitcode", [](const py::bytes &data) { checkBitcode(data); }, py::arg("data"));
  m.def("is_known_processor", &isKnownProcessor, py::arg("triple"), py::arg("cpu"));
  m.def("known_features", &knownFeatures, py::arg("triple"));
  m.def("features_of", &featuresOf, py::arg("triple"), py::arg("cpu"), py::arg("features"));
  m.def("known_processors", &knownProcessors, py::arg("triple"));
  m.def("host_triple", &hostTriple);
  m.def("host_processor", &hostProcessor);
  m.def(
      "link_elf", [](const std::vector<File> &arguments) { linkElf({arguments.begin(), arguments.end()}); },
      py::arg("arguments"), NoGil());
  py::class_<ElfSection>(m, "ElfSection")
      .def_readonly("name", &ElfSection::name)
      .def_readonly("info", &ElfSection::info)
      .def_readonly("size", &ElfSection::size)
      .def_property_readonly("data", [](const ElfSection &self) { return py::bytes(self.data); });
  py::class_<ElfSymbol>(m, "ElfSymbol")
      .def_readonly("name", &ElfSymbol::name)
      .def_readonly("other", &ElfSymbol::other)
      .def_readonly("is_function", &ElfSymbol::isFunction)
      .def_readonly("is_global", &ElfSymbol::isGlobal)
      .def_readonly("is_defined", &ElfSymbol::isDefined);
  py::class_<ElfFile>(m, "ElfFile")
      .def_readonly("machine", &ElfFile::machine)
      .def_readonly("type", &ElfFile::type)
      .def_readonly("abi_version", &ElfFile::abiVersion)
      .def_readonly("flags", &ElfFile::flags)
      .def_readonly("sections", &ElfFile::sections)
      .def_readonly("symbols", &ElfFile::symbols);
  m.def("read_elf", [](const py::bytes &data) { return readElf(data); }, py::arg("data"));
  m.def("archive_symbols", [](const py::bytes &data) { return archiveSymbols(data); }, py::arg("data"));
  m.def("amdgpu_parameters", [](const py::bytes &elf) { return amdgpuParameters(elf); }, py::arg("elf"));
  m.def("amdgpu_resources", [](const py::bytes &elf) { return amdgpuResources(elf); }, py::arg("elf"));
}
