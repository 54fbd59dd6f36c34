// Chooses between the two forms of attention. The tensor cores of BF16 begin with sm_80. Calls
// without a tensor-core form (F32, other head_dims, rows not aligned to 16 bytes) run in F32
// arithmetic. The choice depends on shapes, types and the card alone, so bits repeat.

#include "gpu/ops/attention_paths.h"
#include "gpu/ops/launchers.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <limits>
#include <string>

namespace mr::gpu {
namespace {

constexpr std::int64_t kLongestTile = 1024; // rows past the last token that a kernel may number

bool isAligned16(const TensorView& view) noexcept
{
    return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

template <typename Args>
Status checkLimits(const char* op, const Args& args)
{
    const auto refuse = [op](const std::string& what) {
        return Status::error(ErrorKind::InvalidArgument, std::string(op) + ": " + what);
    };
    if (args.headDim > kMaxHeadDim)
        return refuse("head_dim is " + std::to_string(args.headDim) + ", at most " +
                      std::to_string(kMaxHeadDim));
    if (args.qkv.dims[0] > std::numeric_limits<std::int32_t>::max() - kLongestTile)
        return refuse(std::to_string(args.qkv.dims[0]) + " rows are more than I32 can number");
    return {};
}

template <typename Args>
bool takesMma(const Args& args, const AttentionChoice& choice)
{
    return choice.hasTensorCores() && args.qkv.dtype == DType::BF16 && hasMmaForm(args.headDim) &&
           args.scale > 0.0F && isAligned16(args.qkv) && isAligned16(args.out);
}

} // namespace

Status launchAttention(const AttentionArgs& args, AttentionChoice& choice, cudaStream_t stream)
{
    if (args.qkv.dims[0] == args.firstQuery)
        return {};
    MR_TRY(checkLimits("attention", args));
    return takesMma(args, choice) ? launchAttentionMma(args, choice, stream)
                                  : launchAttentionFma(args, stream);
}

Status launchAttentionBackward(
    const AttentionBackwardArgs& args, AttentionChoice& choice, cudaStream_t stream)
{
    if (args.qkv.dims[0] == 0)
        return {};
    MR_TRY(checkLimits("attentionBackward", args));
    MR_TRY(launchAttentionDelta(args, stream));
    return takesMma(args, choice) && isAligned16(args.gradOut) && isAligned16(args.gradQkv)
               ? launchAttentionBackwardMma(args, choice, stream)
               : launchAttentionBackwardFma(args, stream);
}

} // namespace mr::gpu
