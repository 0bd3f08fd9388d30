# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs the checkout that this recipe lies in, as of its last commit:
#
#   spack repo add packaging/spack
#   spack install wring ^kokkos+cuda cuda_arch=90
from pathlib import Path

from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # before Spack 1.0
    pass


class Wring(CMakePackage):
    """Compressed collectives on Kokkos and MPI, header-only C++20, with a guaranteed bound on the result."""

    git = Path(__file__).resolve().parents[4].as_uri()
    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("kokkos@4.6:")
    depends_on("mpi@3.1:")
    depends_on("fmt@9:")

    def cmake_args(self):
        return [self.define("WRING_BUILD_TESTS", False)]
