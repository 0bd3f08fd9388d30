// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The version of the library (SemVer). CMakeLists.txt reads it from here; the head of every agreement carries it.
#define WRING_VERSION_MAJOR 0
#define WRING_VERSION_MINOR 1
#define WRING_VERSION_PATCH 0
#define WRING_VERSION (WRING_VERSION_MAJOR * 10000 + WRING_VERSION_MINOR * 100 + WRING_VERSION_PATCH)
