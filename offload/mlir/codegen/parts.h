//===- parts.h - Work side by side ------------------------------------------===//
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace offload {

/// Calls `work` with each number below `count`, on as many threads as there are processors at most, this one
/// among them. `what` is said of a crash. Throws what the first of them, by its number, throws, when all have
/// ended. No lock may be held that `work` takes.
void sideBySide(size_t count, const std::string &what, const std::function<void(size_t)> &work);

} // namespace offload
