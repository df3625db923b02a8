#include <catch2/catch.hpp>

#include <stdexcept>

#include <torch/types.h>

#include <yolo9/core/error.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>

using namespace yolo9;

TEST_CASE("the host meter counts the bytes that tensors hold") {
  HostMemorySource source;
  const int64_t before = source.sample().allocated_bytes;
  {
    const auto tensor = torch::empty({1000, 3}, torch::kFloat32);
    CHECK(source.sample().allocated_bytes - before == 12000);
    CHECK(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 64 == 0);
  }
  CHECK(source.sample().allocated_bytes == before);
  source.reset_peak();
  CHECK(source.sample().peak_allocated_bytes == before);
  torch::empty({5000}, torch::kUInt8);
  CHECK(source.sample().peak_allocated_bytes == before + 5000);
}

TEST_CASE("an allocation past the budget is refused by type, in budget scopes only") {
  HostMemorySource source;
  source.set_limit(source.sample().allocated_bytes + (1 << 20));
  CHECK_NOTHROW(torch::empty({1 << 21}, torch::kUInt8));
  bool refused = false;
  {
    const HostBudgetScope scope;
    try {
      torch::empty({1 << 21}, torch::kUInt8);
    } catch (const std::exception& error) {
      refused = is_out_of_memory(error);
    }
    CHECK_NOTHROW(torch::empty({1 << 19}, torch::kUInt8));
  }
  source.set_limit(0);
  CHECK(refused);
  CHECK(source.sample().ooms > 0);
}

TEST_CASE("the n-th allocation can be refused, once") {
  install_host_meter();
  const HostBudgetScope scope;
  refuse_host_allocation(2);
  CHECK_NOTHROW(torch::empty({16}));
  CHECK_THROWS_AS(torch::empty({16}), c10::OutOfMemoryError);
  CHECK_NOTHROW(torch::empty({16}));
}

TEST_CASE("only memory failures are taken for out-of-memory") {
  CHECK(is_out_of_memory(std::bad_alloc()));
  CHECK_FALSE(is_out_of_memory(std::runtime_error("out of memory")));
  const auto taken_for_oom = [](const std::string& message) {
    try {
      TORCH_CHECK(false, message);
    } catch (const std::exception& error) {
      return is_out_of_memory(error);
    }
    return false;
  };
  for (const char* message : {"shapes differ", "CUDA error: an illegal memory access was encountered",
                              "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", "cuDNN error: CUDNN_STATUS_BAD_PARAM"}) {
    CAPTURE(message);
    CHECK_FALSE(taken_for_oom(message));
  }
  for (const char* message :
       {"[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
        "CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "GET was unable to find an engine to execute this computation"}) {
    CAPTURE(message);
    CHECK(taken_for_oom(message));
  }
}

TEST_CASE("amounts of memory are read as users write them") {
  CHECK(parse_bytes("8GiB", 0) == 8589934592);
  CHECK(parse_bytes("8G", 0) == 8589934592);
  CHECK(parse_bytes("500MB", 0) == 500000000);
  CHECK(parse_bytes("1.5 gib", 0) == 1610612736);
  CHECK(parse_bytes("2147483648", 0) == 2147483648);
  CHECK(parse_bytes("85%", 1000) == 850);
  for (const char* bad : {"", "GiB", "-1GiB", "0", "12parsec", "150%", "nan", "1e300GiB", "inf"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_bytes(bad, 1000), Error);
  }
  CHECK(format_bytes(1610612736) == "1.50 GiB");
  CHECK(format_bytes(12) == "12 B");
}

TEST_CASE("the machine's memory is within reason") {
  CHECK(host_total_bytes() > (int64_t{1} << 28));
  CHECK(host_available_bytes() > 0);
  CHECK(host_available_bytes() <= host_total_bytes());
  CHECK(host_peak_resident_bytes() > (1 << 20));
}
