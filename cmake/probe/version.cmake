# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fails where CMake is too old for the project.
cmake_minimum_required(VERSION 3.25)
