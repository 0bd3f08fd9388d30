# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The installed package can be moved: nothing in it names the folder it was built or installed in.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_DATADIR}/cmake/wring)
target_include_directories(wring INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(DIRECTORY include/wring DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/wring)
install(TARGETS wring EXPORT wring)
install(EXPORT wring NAMESPACE wring:: FILE wring-targets.cmake DESTINATION ${package_folder})

# SemVer: before 1.0 a new minor version may break its users, from then on only a new major version may.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/package/wring-config-version.cmake
  COMPATIBILITY ${compatibility} ARCH_INDEPENDENT)
configure_package_config_file(
  cmake/wring-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/package/wring-config.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/wring-config-version.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/package/wring-config.cmake DESTINATION ${package_folder})
install(FILES cmake/WringBuildType.cmake DESTINATION ${package_folder} RENAME wring-build-type.cmake)
