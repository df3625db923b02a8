# Install rules: libraries, headers, package files for CMake and pkg-config, bundled yaml files.
# Included by libyolo9/CMakeLists.txt.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/yolo9")
# Two export sets, so that a project that takes only yolo9::memory needs no OpenCV and no yaml-cpp.
install(TARGETS yolo9_governor EXPORT yolo9MemoryTargets DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS yolo9 EXPORT yolo9Targets DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(set yolo9MemoryTargets yolo9Targets)
  install(EXPORT ${set} NAMESPACE yolo9:: DESTINATION ${package_dir})
endforeach()
foreach(library yolo9 yolo9_governor)
  set_target_properties(${library} PROPERTIES INSTALL_RPATH "$ORIGIN;${LibTorch_RPATH}")
endforeach()

# Left out: the precompiled header, and the headers that draw with OpenCV. tests/package/umbrella.sh knows them too.
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/yolo9"
  FILES_MATCHING PATTERN "*.h" REGEX "core/pch.h|monitor/(canvas|chart).h|data/(picture_places|picture_reader|recent_pictures|row_reducer|stored_part|tile_warp).h" EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/models" "${PROJECT_SOURCE_DIR}/hyp"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/yolo9" FILES_MATCHING PATTERN "*.yaml")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/yolo9Config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/yolo9Config.cmake" INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/yolo9ConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/yolo9Config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/yolo9ConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake" DESTINATION ${package_dir})

# pkg-config has no notion of targets: the generator expressions are resolved here.
get_target_property(torch_includes LibTorch::LibTorch INTERFACE_INCLUDE_DIRECTORIES)
list(TRANSFORM torch_includes PREPEND "-I")
list(JOIN torch_includes " " pc_cflags)
set(pc_libs "-L${LibTorch_ROOT_DIR}/lib")
foreach(dir IN LISTS LibTorch_RPATH)
  string(APPEND pc_libs " -Wl,-rpath,${dir} -Wl,-rpath-link,${dir}")
endforeach()
if(LibTorch_CUDA)
  string(APPEND pc_libs " -Wl,--no-as-needed -ltorch_cuda -lc10_cuda -Wl,--as-needed")
endif()
string(APPEND pc_libs " -ltorch_cpu -lc10 -L$<TARGET_FILE_DIR:opencv_core>")
foreach(library IN LISTS OpenCV_LIBS)
  string(APPEND pc_libs " -l${library}")
endforeach()
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/yolo9.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/yolo9.pc.in" @ONLY)
file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/yolo9.pc" INPUT "${CMAKE_CURRENT_BINARY_DIR}/yolo9.pc.in")
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/yolo9.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
