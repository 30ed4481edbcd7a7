// A peer of bench/aoti: PyTorch's C++ runner of AOTInductor packages.
//
//   runner PACKAGE THREADS MANIFEST DEVICE
//
// The manifest has a line for each input: its dtype, its sizes joined by commas
// (none for a scalar), and the file of its elements. Then each line
// "run MILLISECONDS BATCH" on standard input is answered by a line "COUNT P50 MIN",
// times of runs in nanoseconds, which are waited for after each batch, and "save FILE",
// which writes the elements of all outputs of the first run, one after another, by
// "saved". For GPUs it is built with WITH_CUDA.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#ifdef WITH_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace {

using Clock = std::chrono::steady_clock;

const std::map<std::string, at::ScalarType> dtypes = {
    {"f32", at::kFloat},     {"f64", at::kDouble}, {"f16", at::kHalf},
    {"bf16", at::kBFloat16}, {"i8", at::kChar},    {"i16", at::kShort},
    {"i32", at::kInt},       {"i64", at::kLong},   {"u8", at::kByte},
    {"bool", at::kBool},
};

at::Tensor read_input(const std::string& line) {
  std::istringstream fields(line);
  std::string dtype, sizes, path;
  std::getline(fields, dtype, '\t');
  std::getline(fields, sizes, '\t');
  std::getline(fields, path);
  std::vector<int64_t> dims;
  std::istringstream list(sizes);
  for (std::string d; std::getline(list, d, ',');) {
    dims.push_back(std::stoll(d));
  }
  at::Tensor t = at::empty(dims, dtypes.at(dtype));
  std::ifstream file(path, std::ios::binary);
  file.read(static_cast<char*>(t.data_ptr()), static_cast<std::streamsize>(t.nbytes()));
  if (file.gcount() != static_cast<std::streamsize>(t.nbytes())) {
    throw std::runtime_error(path + " is too short");
  }
  return t;
}

void save(const std::vector<at::Tensor>& tensors, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const at::Tensor& t : tensors) {
    const at::Tensor dense = t.cpu().contiguous();
    file.write(static_cast<const char*>(dense.data_ptr()), static_cast<std::streamsize>(dense.nbytes()));
  }
}

// open makes a loader for a single caller, which on a GPU does not wait for each run before the next. That
// of PyTorch 2.6 has no such choice.
template <class Loader>
std::unique_ptr<Loader> open(const std::string& path, bool single, c10::DeviceIndex index) {
  if constexpr (std::is_constructible_v<Loader, const std::string&, const char*, bool, size_t, c10::DeviceIndex>) {
    return std::make_unique<Loader>(path, "model", single, 1, index);
  } else {
    return std::make_unique<Loader>(path, "model");
  }
}

void finish() {
#ifdef WITH_CUDA
  c10::cuda::device_synchronize();
#endif
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: runner PACKAGE THREADS MANIFEST DEVICE\n";
    return 2;
  }
  at::set_num_threads(std::stoi(argv[2]));
  const at::Device device(argv[4]);
  const bool cuda = device.is_cuda();
  const c10::DeviceIndex index = cuda ? std::max<c10::DeviceIndex>(device.index(), 0) : -1;
#ifdef WITH_CUDA
  c10::cuda::set_device(index);
  at::globalContext().setAllowTF32CuDNN(false);
#endif
  std::vector<at::Tensor> inputs;
  std::ifstream manifest(argv[3]);
  for (std::string line; std::getline(manifest, line);) {
    inputs.push_back(read_input(line).to(device));
  }
  const auto begin = Clock::now();
  const auto opened = open<torch::inductor::AOTIModelPackageLoader>(argv[1], cuda, index);
  auto& loader = *opened;
  const auto load = Clock::now() - begin;
  std::vector<at::Tensor> first = loader.run(inputs);
  finish();
  std::cout << "ready " << std::chrono::nanoseconds(load).count() << std::endl;
  std::string word;
  int64_t ms = 0, batch = 0;
  while (std::cin >> word) {
    if (word == "save") {
      std::string path;
      std::getline(std::cin >> std::ws, path);
      save(first, path);
      first.clear();
      std::cout << "saved" << std::endl;
      continue;
    }
    std::cin >> ms >> batch;
    std::vector<int64_t> times;
    const auto end = Clock::now() + std::chrono::milliseconds(ms);
    do {
      const auto t0 = Clock::now();
      for (int64_t i = 0; i < batch; i++) {
        loader.run(inputs);
      }
      finish();
      times.push_back(std::chrono::nanoseconds(Clock::now() - t0).count() / batch);
    } while (Clock::now() < end);
    std::sort(times.begin(), times.end());
    std::cout << times.size() << ' ' << times[times.size() / 2] << ' ' << times[0] << std::endl;
  }
  return 0;
}
