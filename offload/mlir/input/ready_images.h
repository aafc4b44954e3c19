//===- ready_images.h - Compiled code that a program carries --------------===//
#pragma once

#include "session.h"

#include <optional>

namespace offload {

/// Compiled code in a program: an object of a gpu.binary, or an attribute of a gpu.module.
struct ReadyObject {
  std::string module;     // the symbol of the gpu.binary or gpu.module
  Diagnostic position;    // of that operation
  std::string target;     // the object's target attribute as text; empty for attributes
  std::string annotation; // the attribute's name; empty for objects
  std::string format;     // bin, isa, fatbin or offload; empty for attributes
  std::string data;       // unchanged
  std::optional<std::vector<std::string>> kernels; // of the object's kernel table
  std::optional<int64_t> jitLevel;                 // the property O of assembly
};

/// A launch of a kernel that is in a gpu.binary or gpu.module.
struct LaunchSite {
  std::string kernel;
  Diagnostic position;
};

/// Is there a gpu.binary, or a gpu.module with attributes of someone's own? Without, nothing is ready.
bool mayHoldReadyObjects(const IRModule &module);

/// The ready objects of a program, in order, taken out of it where they are attributes (of the given names):
/// no text of a later stage has them, and the module is marked with kReady. Of a gpu.binary with
/// #gpu.select_object<…> the chosen object alone. Throws Failure at the operation.
std::vector<ReadyObject> takeReadyObjects(IRModule &module, const std::vector<std::string> &annotations);

/// The launches of the kernels of a gpu.binary or gpu.module, in order.
std::vector<LaunchSite> launchesOf(const IRModule &module, const std::string &name);

/// Tells the launches of a kernel of compiled code what to pass: `bytes` are the sizes of its parameters in
/// the image, which errors name; `bare` whether the build has plain pointers for memrefs. Throws Failure at a
/// launch that passes something else.
void noteParameters(IRModule &module, const std::string &name, const std::string &kernel,
                    const std::vector<int64_t> &bytes, const std::string &image, bool bare);

/// Where a gpu.binary or gpu.module stands.
Diagnostic positionOf(const IRModule &module, const std::string &name);

/// Has a gpu.module kernels, each with a body? A gpu.binary never has.
bool hasSource(const IRModule &module, const std::string &name);

} // namespace offload
