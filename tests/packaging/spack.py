# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the Spack recipe with a stand-in for Spack, and compares what it says with the CMake files.

Usage: spack.py REPOSITORY
"""
import re
import sys
import types
from pathlib import Path

repository = Path(sys.argv[1])
said = {"depends_on": {}, "version": [], "license": []}


class CMakePackage:
    @staticmethod
    def define(name, value):
        return f"-D{name}={value}"


def depends_on(spec, **_):
    name, _, least = spec.partition("@")
    said["depends_on"][name] = least.rstrip(":")


package = types.ModuleType("spack.package")
package.CMakePackage = CMakePackage
package.depends_on = depends_on
package.version = lambda name, **where: said["version"].append((name, where))
package.license = lambda name: said["license"].append(name)
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = package

recipe = repository / "packaging/spack/packages/wring/package.py"
names = {"__file__": str(recipe), "__name__": "recipe"}
exec(compile(recipe.read_text(), recipe, "exec"), names)
wring = names["Wring"]

top = (repository / "CMakeLists.txt").read_text()
cmake = top + (repository / "cmake/WringDependencies.cmake").read_text()
faults = []


def expect(what, got, wanted):
    if got != wanted:
        faults.append(f"{what}: the recipe says {got!r}, CMake {wanted!r}")


def stated(pattern):
    return re.search(pattern, cmake).group(1)


least = said["depends_on"]
expect("kokkos", least.get("kokkos"), stated(r"WRING_KOKKOS_MINIMUM ([0-9.]+)"))
expect("mpi", least.get("mpi"), stated(r"WRING_MPI_MINIMUM ([0-9.]+)"))
expect("fmt", least.get("fmt"), stated(r"wring_dependency\(fmt ([0-9.]+)"))
expect("cmake", least.get("cmake"), stated(r"cmake_minimum_required\(VERSION ([0-9.]+)"))
expect("dependencies", set(least), {"cxx", "cmake", "kokkos", "mpi", "fmt"})
expect("licence", said["license"], ["Apache-2.0 WITH LLVM-exception"])
expect("base class", wring.__mro__[1], CMakePackage)
expect("source", wring.git, repository.resolve().as_uri())
for argument in wring().cmake_args():
    option = re.match(r"-D(\w+)=", argument).group(1)
    if not re.search(rf"option\({option} ", top):
        faults.append(f"the recipe sets {option}, which is no option of CMakeLists.txt")
if not said["version"]:
    faults.append("the recipe has no version")
print("\n".join(faults) or "the recipe agrees with the CMake files")
sys.exit(1 if faults else 0)
