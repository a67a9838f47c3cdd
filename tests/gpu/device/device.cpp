// GPUs in host memory for torch's CPU build: a call on a GPU is the CPU's kernel on the same numbers. What is the GPU's
// own is here: several devices, which no call may mix, their memory, and counts of calls, copies and waits.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/record_function.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fcntl.h>
#include <torch/library.h>
#include <unistd.h>

namespace {
using at::Tensor;
using c10::Device;
using c10::DeviceIndex;

enum Count { CALLS, UPLOADS, DOWNLOADS, WAITS, BYTES, PEAK, COUNTS };
struct Gpu {
  std::atomic<int64_t> counts[COUNTS]{};
  int64_t memory = 0;          // bytes
  int64_t lost_after = -1;     // calls
  std::string lost_file;       // is made then
};
Gpu gpus[16];
int seen = 0;                  // of them, by this process
std::atomic<int> owner{0};     // the process that may use them
std::atomic<bool> waiting_is_an_error{false};
thread_local DeviceIndex current = 0;

Gpu& gpu_of(int index) {
  TORCH_CHECK(0 <= index && index < seen, "CUDA error: invalid device ordinal ", index, " of ", seen);
  return gpus[index];
}

Gpu& called(int index, const std::string& what) {
  RECORD_FUNCTION("cudaLaunchKernel", c10::ArrayRef<const c10::IValue>{});  // a profiler sees it under CUDA's name
  Gpu& gpu = gpu_of(index);
  TORCH_CHECK(owner == getpid(), "CUDA error: initialization error: ", what, " in a process forked after CUDA began");
  const int64_t calls = ++gpu.counts[CALLS];
  if (calls == gpu.lost_after) close(open(gpu.lost_file.c_str(), O_CREAT | O_WRONLY, 0600));
  TORCH_CHECK(gpu.lost_after < 0 || calls < gpu.lost_after, "CUDA error: unspecified launch failure: ", what);
  return gpu;
}

void waited(Gpu& gpu, const std::string& what) {
  RECORD_FUNCTION("cudaStreamSynchronize", c10::ArrayRef<const c10::IValue>{});
  gpu.counts[WAITS]++;
  TORCH_CHECK(!waiting_is_an_error, "called a synchronizing CUDA operation: ", what);
}

// --- memory: a GPU's storage keeps the CPU's tensor that it is

struct Block {
  Tensor host;
  Gpu& gpu;
  int64_t bytes;
};

void release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  block->gpu.counts[BYTES] -= block->bytes;
}

Tensor on_gpu(const Tensor& host, int index) {
  Gpu& gpu = gpu_of(index);
  const auto bytes = static_cast<int64_t>(host.storage().nbytes());
  const int64_t now = gpu.counts[BYTES] += bytes;
  if (now > gpu.memory) {
    gpu.counts[BYTES] -= bytes;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes, " bytes on GPU ", index);
  }
  int64_t peak = gpu.counts[PEAK];
  while (now > peak && !gpu.counts[PEAK].compare_exchange_weak(peak, now)) {}
  const Device device(c10::kCUDA, static_cast<DeviceIndex>(index));
  c10::DataPtr data(host.storage().mutable_data(), new Block{host, gpu, bytes}, release, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(data), nullptr, false);
  Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), host.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  return made;
}

// Made anew where there is nothing to share, because a kernel may resize it.
Tensor on_host(const Tensor& own) {
  const auto options = own.options().device(c10::kCPU).requires_grad(false);
  if (!own.numel()) return at::empty_strided(own.sizes(), own.strides(), options);
  const c10::Storage kept = own.storage();
  return at::from_blob(own.data_ptr(), own.sizes(), own.strides(), [kept](void*) {}, options);
}

int index_of(std::optional<Device> device) { return device && device->has_index() ? device->index() : current; }

Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
             std::optional<Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const auto options = at::TensorOptions(c10::kCPU).dtype(type);
  return on_gpu(at::empty(size, options, format), index_of(device));
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> type,
                     std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>) {
  return on_gpu(at::empty_strided(size, stride, at::TensorOptions(c10::kCPU).dtype(type)), index_of(device));
}

Tensor& copy(Tensor& to, const Tensor& from, bool non_blocking) {
  at::AutoDispatchBelowADInplaceOrView kernels_only;
  Gpu& gpu = called((to.is_cuda() ? to : from).device().index(), "copy_");
  if (!from.is_cuda()) {
    gpu.counts[UPLOADS]++;
    if (!non_blocking) waited(gpu, "copy_ to the GPU");
  } else if (!to.is_cuda()) {
    gpu.counts[DOWNLOADS]++;
    waited(gpu, "copy_ from the GPU");  // its memory is never pinned
  } else if (to.device() != from.device()) {
    called(from.device().index(), "copy_");
  }
  Tensor target = to.is_cuda() ? on_host(to) : to;
  target.copy_(from.is_cuda() ? on_host(from) : from);
  return to;
}

at::Scalar item(const Tensor& own) {
  at::AutoDispatchBelowADInplaceOrView kernels_only;
  Gpu& gpu = called(own.device().index(), "item");
  gpu.counts[DOWNLOADS]++;
  waited(gpu, "item");
  return on_host(own).item();
}

bool has_any(const std::string& name, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return name.find(part) != std::string::npos; });
}

// Those that raise on a GPU under torch.use_deterministic_algorithms, by torch's documentation of it.
bool varies(const std::string& name) {
  if (has_any(name, {"::put_", "::histc", "::median", "::max_unpool", "::cumsum", "nll_loss2d", "_ctc_loss_backward"}))
    return true;
  return has_any(name, {"_backward"}) && has_any(name, {"upsample", "reflection_pad", "adaptive_", "avg_pool3d",
                                                         "fractional_max", "grid_sampler", "max_pool3d"});
}

class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack), name_(op.schema().name()) {}

  void run() {
    at::AutoDispatchBelowADInplaceOrView kernels_only;
    const size_t arguments = op_.schema().arguments().size(), returns = op_.schema().returns().size();
    for (size_t i = stack_.size() - arguments; i < stack_.size(); i++) down(stack_[i]);
    index_ = index_ < 0 ? current : index_;
    Gpu& gpu = called(index_, name_);
    if (by_mask_ || has_any(name_, {"nonzero", "masked_select", "unique", "::equal", "bincount", "repeat_interleave"}))
      waited(gpu, name_);
    if (varies(name_)) at::globalContext().alertNotDeterministic(name_);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (size_t i = stack_.size() - returns; i < stack_.size(); i++) up(stack_[i]);
  }

 private:
  Tensor given(const Tensor& own) {
    if (!own.defined()) return own;
    if (!own.is_cuda()) {  // a number may come from the CPU
      TORCH_CHECK(own.dim() == 0, "Expected all tensors to be on the same device: one of the CPU in ", name_);
      return own;
    }
    TORCH_CHECK(index_ < 0 || index_ == own.device().index(), "Expected all tensors to be on the same device: cuda:",
                index_, " and ", own.device(), " in ", name_);
    index_ = own.device().index();
    pairs_.emplace_back(on_host(own), own);
    return pairs_.back().first;
  }

  void down(at::IValue& value) {
    if (value.isTensor()) {
      value = given(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& one : value.toTensorVector()) list.push_back(given(one));
      value = list;
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const auto& one : value.toOptionalTensorVector()) {
        by_mask_ |= one && one->scalar_type() == at::kBool;
        list.push_back(one ? std::optional(given(*one)) : one);
      }
      value = list;
    } else if (value.isDevice()) {
      index_ = index_of(value.toDevice());
      value = Device(c10::kCPU);
    }
  }

  Tensor returned(const Tensor& host) {
    if (!host.defined()) return host;
    for (auto& [given, own] : pairs_) {
      if (!given.is_same(host)) continue;
      if (own.sizes() != host.sizes()) {  // an empty one for the result
        const Tensor made = on_gpu(host, index_);
        own.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
        own.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides());
      }
      return own;
    }
    for (auto& pair : pairs_)
      TORCH_CHECK(!host.numel() || pair.first.data_ptr() != host.data_ptr(), "the test device has no view ", name_);
    return on_gpu(host, index_);
  }

  void up(at::IValue& value) {
    if (value.isTensor()) {
      value = returned(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& one : value.toTensorVector()) list.push_back(returned(one));
      value = list;
    }
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const std::string name_;
  std::vector<std::pair<Tensor, Tensor>> pairs_;  // on the host, on the GPU
  int index_ = -1;
  bool by_mask_ = false;
};

void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }
using Ints = c10::SymIntArrayRef;
at::IntArrayRef ints(Ints sizes) { return C10_AS_INTARRAYREF_SLOW(sizes); }
Tensor view(const Tensor& own, Ints size) { return at::native::view(own, ints(size)); }
Tensor alias(const Tensor& own, Ints size, Ints by) { return at::native::_reshape_alias(own, ints(size), ints(by)); }
Tensor as_strided(const Tensor& own, Ints size, Ints by, std::optional<c10::SymInt> offset) {
  const auto start = offset ? std::optional(offset->guard_int(__FILE__, __LINE__)) : std::nullopt;
  return at::native::as_strided_tensorimpl(own, ints(size), ints(by), start);
}
Tensor unfold(const Tensor& own, int64_t dim, int64_t n, int64_t by) { return at::native::unfold(own, dim, n, by); }
Tensor& set(Tensor& own, at::Storage from) {
  own.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(from.nbytes() / own.element_size())});
  return own.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(from)), own;
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&call>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("copy_", TORCH_FN(copy));
  library.impl("_local_scalar_dense", TORCH_FN(item));
  library.impl("view", TORCH_FN(view));
  library.impl("_reshape_alias", TORCH_FN(alias));
  library.impl("as_strided", TORCH_FN(as_strided));
  library.impl("unfold", TORCH_FN(unfold));
  library.impl("set_.source_Storage", TORCH_FN(set));
}

// --- what torch asks of a kind of device; there is one stream, and every call has ended when it returns

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::kCUDA> {
  static constexpr c10::DeviceType static_type = c10::kCUDA;
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return {c10::kCUDA, current}; }
  void setDevice(Device device) const override { gpu_of(device.index()), current = device.index(); }
  void uncheckedSetDevice(Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, Device(c10::kCUDA, static_cast<DeviceIndex>(index_of(device))));
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(seen); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);
}  // namespace

namespace at {
struct CUDAHooks final : CUDAHooksInterface {  // by this name torch finds it
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return seen > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return owner != 0; }
  DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(seen); }
  DeviceIndex getCurrentDevice() const override { return current; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at

extern "C" {
void gpu_add(int64_t memory, int64_t lost_after, const char* lost_file) {
  Gpu& gpu = gpus[seen++];
  gpu.memory = memory, gpu.lost_after = lost_after, gpu.lost_file = lost_file;
}
int gpu_begin() { return owner == 0 ? owner = getpid(), 1 : owner == getpid(); }  // 0: in a fork of the owner
void gpu_synchronize(int index) { waited(called(index, "synchronize"), "synchronize"); }
void gpu_waiting_is_an_error(int yes) { waiting_is_an_error = yes != 0; }
int64_t gpu_count(int index, int which) { return gpus[index].counts[which]; }
void gpu_reset_peak(int index) { gpus[index].counts[PEAK] = gpus[index].counts[BYTES].load(); }
}
