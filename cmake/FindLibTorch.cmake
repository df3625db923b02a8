# Finds LibTorch and defines plain imported targets for it.
#
# LibTorch's own TorchConfig.cmake asks for a CUDA compiler as soon as the build has CUDA, although
# nothing here compiles CUDA sources. The libraries and headers are enough, so they are found directly.
#
# Searched, in this order: LibTorch_ROOT, Torch_DIR, CMAKE_PREFIX_PATH (each as variable or environment),
# the per-user cache that the start script fills. A root is a folder that has include/ATen and
# lib/libtorch_cpu.so: the official zip, a PyPI wheel's torch/ folder, a conda site-packages/torch.
#
# Defines LibTorch::LibTorch, LibTorch_VERSION, LibTorch_ROOT_DIR, LibTorch_CUDA.

set(_roots "")
foreach(_var LibTorch_ROOT Torch_DIR CMAKE_PREFIX_PATH)
  foreach(_value IN LISTS ${_var})
    list(APPEND _roots "${_value}")
  endforeach()
  if(DEFINED ENV{${_var}})
    string(REPLACE ":" ";" _values "$ENV{${_var}}")
    list(APPEND _roots ${_values})
  endif()
endforeach()
if(DEFINED ENV{YOLO9_DEPS})
  set(_cache "$ENV{YOLO9_DEPS}")
else()
  set(_cache "$ENV{HOME}/.cache/yolo9")
endif()
file(GLOB _cached "${_cache}/torch-*/torch")
list(SORT _cached COMPARE NATURAL ORDER DESCENDING)
if(YOLO9_CUDA STREQUAL "ON")
  list(FILTER _cached INCLUDE REGEX "-cuda/torch$")
endif()
list(APPEND _roots ${_cached})

set(LibTorch_ROOT_DIR "")
foreach(_root IN LISTS _roots)
  # Torch_DIR points at <root>/share/cmake/Torch; a prefix may be the root's parent or a Python prefix.
  file(GLOB _candidates "${_root}" "${_root}/../../.." "${_root}/torch" "${_root}/lib/python3*/site-packages/torch")
  foreach(_candidate IN LISTS _candidates)
    if(NOT LibTorch_ROOT_DIR AND EXISTS "${_candidate}/lib/libtorch_cpu.so"
       AND EXISTS "${_candidate}/include/ATen/ATen.h")
      get_filename_component(LibTorch_ROOT_DIR "${_candidate}" REALPATH)
    endif()
  endforeach()
endforeach()

set(LibTorch_VERSION "")
if(LibTorch_ROOT_DIR)
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_ROOT_DIR}/include/${_header}")
      file(STRINGS "${LibTorch_ROOT_DIR}/include/${_header}" _lines
        REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      string(REGEX REPLACE "[^0-9;]" "" _numbers "${_lines}")
      string(REPLACE ";" "." LibTorch_VERSION "${_numbers}")
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_ROOT_DIR VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE
    "Set Torch_DIR or CMAKE_PREFIX_PATH to a LibTorch 2.11 to 2.15, or run ./yolo9 build, which fetches one.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  if(LibTorch_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} at ${LibTorch_ROOT_DIR} is too old: 2.11 or newer is needed.")
  elseif(LibTorch_VERSION VERSION_GREATER_EQUAL 2.16)
    message(WARNING "LibTorch ${LibTorch_VERSION} is newer than the versions tried (2.11 to 2.15).")
  endif()
  set(_lib "${LibTorch_ROOT_DIR}/lib")
  # Wheels keep the CUDA libraries beside torch/, in nvidia/<component>/lib.
  file(GLOB _cuda_dirs "${LibTorch_ROOT_DIR}/../nvidia/*/lib" "/usr/local/cuda/lib64")
  foreach(_name c10 torch_cpu)
    add_library(LibTorch::${_name} SHARED IMPORTED)
    set_target_properties(LibTorch::${_name} PROPERTIES IMPORTED_LOCATION "${_lib}/lib${_name}.so")
  endforeach()
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    "${LibTorch_ROOT_DIR}/include" "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
  target_link_libraries(LibTorch::LibTorch INTERFACE LibTorch::torch_cpu LibTorch::c10)
  target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_compile_features(LibTorch::LibTorch INTERFACE cxx_std_20)

  set(LibTorch_CUDA OFF)
  if(NOT YOLO9_CUDA STREQUAL "OFF")
    set(_cuda_header "")
    file(GLOB _cuda_includes "${LibTorch_ROOT_DIR}/../nvidia/*/include" "/usr/local/cuda/include")
    foreach(_dir IN LISTS _cuda_includes)
      if(NOT _cuda_header AND EXISTS "${_dir}/cuda_runtime_api.h")
        set(_cuda_header "${_dir}")
      endif()
    endforeach()
    # All of libtorch_cuda's own dependencies must be there, or the program could not start.
    set(_missing "")
    foreach(_dep cublas cudnn nccl cusparseLt nvshmem_host)
      set(_found "")
      foreach(_dir IN LISTS _cuda_dirs)
        file(GLOB _match "${_dir}/lib${_dep}.so*")
        list(APPEND _found ${_match})
      endforeach()
      file(GLOB _match "/usr/lib/x86_64-linux-gnu/lib${_dep}.so*" "${_lib}/lib${_dep}*.so*")
      list(APPEND _found ${_match})
      if(NOT _found)
        list(APPEND _missing ${_dep})
      endif()
    endforeach()
    if(EXISTS "${_lib}/libtorch_cuda.so" AND _cuda_header AND NOT _missing)
      set(LibTorch_CUDA ON)
    elseif(YOLO9_CUDA STREQUAL "ON")
      message(FATAL_ERROR "YOLO9_CUDA=ON, but LibTorch at ${LibTorch_ROOT_DIR} has no usable CUDA libraries "
                          "(missing: ${_missing}).")
    endif()
  endif()
  if(LibTorch_CUDA)
    foreach(_name c10_cuda torch_cuda)
      add_library(LibTorch::${_name} SHARED IMPORTED)
      set_target_properties(LibTorch::${_name} PROPERTIES IMPORTED_LOCATION "${_lib}/lib${_name}.so")
    endforeach()
    target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${_cuda_header}")
    # Nothing refers to a symbol of libtorch_cuda directly; its static initialisers register the device.
    target_link_libraries(LibTorch::LibTorch INTERFACE
      -Wl,--no-as-needed LibTorch::torch_cuda LibTorch::c10_cuda -Wl,--as-needed)
  endif()
  foreach(_dir IN LISTS _cuda_dirs)
    target_link_options(LibTorch::LibTorch INTERFACE "-Wl,-rpath-link,${_dir}")
  endforeach()
  # The wheel's RPATH covers its own libraries; a system CUDA toolkit needs one of ours.
  set(LibTorch_RPATH "${_lib}" ${_cuda_dirs})
endif()
