// SPDX-License-Identifier: BSD-3-Clause
#include "byway/torch/tensors.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <mutex>
#include <sstream>

#include "byway/torch/errors.h"
#include "byway/torch/torch_version.h"

namespace byway::pytorch {
namespace {

std::optional<DType> arithmeticType(at::ScalarType type) {
  // The list is torch's to extend: what is not here has no arithmetic in Byway.
  static const std::vector<std::pair<at::ScalarType, DType>> types{
      {at::kBool, DType::Bool},
      {at::kByte, DType::UInt8},
      {at::kUInt16, DType::UInt16},
      {at::kUInt32, DType::UInt32},
      {at::kUInt64, DType::UInt64},
      {at::kChar, DType::Int8},
      {at::kShort, DType::Int16},
      {at::kInt, DType::Int32},
      {at::kLong, DType::Int64},
      {at::kHalf, DType::Float16},
      {at::kBFloat16, DType::BFloat16},
      {at::kFloat, DType::Float32},
      {at::kDouble, DType::Float64},
      {at::kFloat8_e4m3fn, DType::Float8E4M3FN},
      {at::kFloat8_e5m2, DType::Float8E5M2},
      {at::kFloat8_e4m3fnuz, DType::Float8E4M3FNUZ},
      {at::kFloat8_e5m2fnuz, DType::Float8E5M2FNUZ},
      {at::kComplexFloat, DType::Complex64},
      {at::kComplexDouble, DType::Complex128}};
  for (const auto& [torchType, ours] : types) {
    if (torchType == type) return ours;
  }
  return std::nullopt;
}

std::optional<DType> typeOfSize(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::UInt8;
    case 2:
      return DType::UInt16;
    case 4:
      return DType::UInt32;
    case 8:
      return DType::UInt64;
    default:
      return std::nullopt;
  }
}

bool isDense(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg() &&
         !tensor._is_zerotensor();
}

// True where two indices may name one element. With the dimensions by stride, each must step over
// all that the smaller ones reach.
bool mayOverlapItself(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || at::has_internal_overlap(tensor) == at::MemOverlap::No) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) dims.emplace_back(tensor.stride(d), tensor.size(d));
  }
  std::sort(dims.begin(), dims.end());
  std::int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

Buffer bufferOf(const at::Tensor& tensor) {
  return {tensor.numel() == 0 ? nullptr : tensor.data_ptr(), tensor.nbytes()};
}

at::Tensor contiguousLike(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream out;
  if (!tensor.defined()) return "an undefined tensor";
  std::string type = c10::toString(tensor.scalar_type());
  if (const auto ours = arithmeticType(tensor.scalar_type())) type = byway::toString(*ours);
  out << type << tensor.sizes();
  return out.str();
}

std::mutex leftoversMutex;
// Never destroyed: tensors must not be freed while the process ends.
std::vector<Tensors>& leftovers() {
  static auto* const all = new std::vector<Tensors>();
  return *all;
}

}  // namespace

void checkTensor(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) invalid(what + " is an undefined tensor");
  if (tensor.layout() != at::kStrided) {
    std::ostringstream layout;
    layout << tensor.layout();
    invalid(what + " has layout " + layout.str() + "; only strided (dense) tensors are possible");
  }
  if (!tensor.device().is_cpu()) {
    const bool lazy = tensor.device().is_lazy();
    throw Error(lazy ? ErrorCode::Unsupported : ErrorCode::InvalidArgument,
                what + " is on device " + tensor.device().str() +
                    (lazy ? "; lazy mode is not enabled in this process" : "; expected cpu"));
  }
}

void checkTensors(const Tensors& tensors, const std::string& what) {
  if (tensors.empty()) invalid(what + " is an empty list");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    checkTensor(tensors[i], what + " " + std::to_string(i));
    if (tensors[i].scalar_type() != tensors[0].scalar_type()) {
      invalid(what + " has elements of types " + c10::toString(tensors[0].scalar_type()) + " and " +
              c10::toString(tensors[i].scalar_type()) + "; they must be the same");
    }
  }
}

DType dtypeOf(at::ScalarType torchType, bool reduces) {
  if (const auto type = arithmeticType(torchType)) return *type;
  const auto type = typeOfSize(c10::elementSize(torchType));
  if (reduces || !type) {
    invalid(std::string(c10::toString(torchType)) + " has no arithmetic in Byway");
  }
  return *type;
}

DType dtypeOf(const at::Tensor& tensor, bool reduces) {
  return dtypeOf(tensor.scalar_type(), reduces);
}

Reduction reductionOf(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::Sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::Avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::Product;
    case c10d::ReduceOp::MIN:
      return ReduceOp::Min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::Max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::BitAnd;
    case c10d::ReduceOp::BOR:
      return ReduceOp::BitOr;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::BitXor;
    case c10d::ReduceOp::PREMUL_SUM:
      break;
    case c10d::ReduceOp::UNUSED:
      invalid("the reduce operation is UNUSED");
  }
  const auto* factor = dynamic_cast<const PreMulSum*>(op.supplement_.get());
  if (factor == nullptr) invalid("PREMUL_SUM has no factor");
  if (!factor->tensor_factor.defined()) return {ReduceOp::PremulSum, factor->double_factor};
  const at::Scalar value = factor->tensor_factor.item();
  return {ReduceOp::PremulSum, value.isComplex() ? std::complex<double>(value.toComplexDouble())
                                                 : std::complex<double>(value.toDouble())};
}

std::uint64_t countOf(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel());
}

std::uint64_t countOf(const Tensors& tensors) {
  std::uint64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += countOf(tensor);
  return sum;
}

std::string describe(const Tensors& tensors) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + describe(tensors[i]);
  }
  if (tensors.size() > kShown) text += ", ... (" + std::to_string(tensors.size()) + " tensors)";
  return text;
}

Holder::~Holder() {
  if (held_.empty() && copies_.empty()) return;
  for (auto& [to, from] : copies_) {
    held_.push_back(std::move(to));
    held_.push_back(std::move(from));
  }
  const std::scoped_lock lock(leftoversMutex);
  leftovers().push_back(std::move(held_));
}

void freeLeftovers() {
  std::vector<Tensors> mine;  // freed after the lock
  {
    const std::scoped_lock lock(leftoversMutex);
    mine.swap(leftovers());
  }
}

void Holder::addInput(const at::Tensor& tensor, std::vector<Buffer>& parts) {
  if (isDense(tensor)) {
    held_.push_back(tensor);
  } else {
    held_.push_back(contiguousLike(tensor));
    const at::AutoDispatchBelowADInplaceOrView noGrad;
    held_.back().copy_(tensor);
  }
  parts.push_back(bufferOf(held_.back()));
}

void Holder::addOutput(const at::Tensor& tensor, bool withContents, std::vector<Buffer>& parts) {
  if (mayOverlapItself(tensor)) {
    std::ostringstream strides;
    strides << tensor.strides();
    invalid("an output of strides " + strides.str() +
            " has several elements at one address (an expanded tensor?); give a clone() of it");
  }
  if (isDense(tensor)) {
    held_.push_back(tensor);
    parts.push_back(bufferOf(tensor));
    return;
  }
  at::Tensor received = contiguousLike(tensor);
  if (withContents) {
    const at::AutoDispatchBelowADInplaceOrView noGrad;
    received.copy_(tensor);
  }
  parts.push_back(bufferOf(received));
  copies_.emplace_back(tensor, std::move(received));
}

Region Holder::input(const at::Tensor& tensor) {
  std::vector<Buffer> parts;
  addInput(tensor, parts);
  return parts;
}

Region Holder::input(const Tensors& tensors) {
  std::vector<Buffer> parts;
  parts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) addInput(tensor, parts);
  return parts;
}

Region Holder::output(const at::Tensor& tensor) {
  std::vector<Buffer> parts;
  addOutput(tensor, false, parts);
  return parts;
}

Region Holder::output(const Tensors& tensors) {
  std::vector<Buffer> parts;
  parts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) addOutput(tensor, false, parts);
  return parts;
}

Region Holder::inOut(const at::Tensor& tensor) {
  std::vector<Buffer> parts;
  addOutput(tensor, true, parts);
  return parts;
}

void Holder::afterwards(const at::Tensor& result, std::function<void()> action) {
  held_.push_back(result);
  afterwards_ = std::move(action);
}

void Holder::copyBack() {
  const at::AutoDispatchBelowADInplaceOrView noGrad;
  for (auto& [to, from] : copies_) to.copy_(from);
  if (afterwards_) afterwards_();
}

void Holder::clear() {
  afterwards_ = nullptr;
  held_.clear();
  copies_.clear();
}

}  // namespace byway::pytorch
