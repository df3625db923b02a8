# Compile settings shared by every target of the project.

add_library(yolo9_settings INTERFACE)
target_compile_features(yolo9_settings INTERFACE cxx_std_20)
# -ffp-contract=off: results must not depend on whether the compiler finds a fused multiply-add.
# -fPIC everywhere, also in programs: the precompiled header serves only files of the same code model.
# GCC 12 reports -Wrestrict and -Warray-bounds falsely inside std::string (GCC bugs 105651, 105329).
target_compile_options(yolo9_settings INTERFACE -fPIC -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-restrict -Wno-array-bounds -ffp-contract=off
  $<$<BOOL:${YOLO9_WARNINGS_AS_ERRORS}>:-Werror>)
if(YOLO9_SANITIZE)
  # -O1: GCC takes minutes a file to optimise instrumented code further.
  target_compile_options(yolo9_settings INTERFACE -fsanitize=${YOLO9_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  target_link_options(yolo9_settings INTERFACE -fsanitize=${YOLO9_SANITIZE})
endif()

# One precompiled header for all: without it each file spends half a minute in LibTorch's headers.
function(yolo9_use_pch target)
  if(TARGET yolo9_pch)
    target_precompile_headers(${target} REUSE_FROM yolo9_pch)
  endif()
endfunction()
