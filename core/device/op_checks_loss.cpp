// Checks of the ops of loss_ops.h. See op_checks.h.

#include "core/device/op_checker.h"
#include "core/device/op_checks.h"

namespace mr {

using checks::Checker;
using checks::isCompute;
using checks::kCapWords;

namespace {

constexpr const char* kFirstColumnWords = "first must not be negative";

} // namespace

Status checkCrossEntropy(const CrossEntropyArgs& a)
{
    const std::int64_t rows = a.logits.dims[0];
    return Checker("crossEntropy")
        .leads("logits", a.logits, 2, true)
        .tensor("targets", a.targets, DType::I32, {rows})
        .tensor("losses", a.losses, DType::F32, {rows})
        .holds(
            !a.gradLogits.data || isCompute(a.gradLogits.dtype), "gradLogits must be F32 or BF16")
        .optional("gradLogits", a.gradLogits, a.gradLogits.dtype, {rows, a.logits.dims[1]})
        .holds(a.gradLogits.data != a.logits.data || a.gradLogits.dtype == DType::F32 || rows == 0,
            "gradLogits may be logits only as F32")
        .holds(a.softcap >= 0.0F, kCapWords)
        .status();
}

Status checkSoftmaxPart(const SoftmaxPartArgs& a)
{
    const std::int64_t rows = a.logits.dims[0];
    const std::int64_t parts = a.tops.dims[1];
    return Checker("softmaxPart")
        .leads("logits", a.logits, 2, true)
        .tensor("targets", a.targets, DType::I32, {rows})
        .tensor("tops", a.tops, DType::F32, {rows, parts})
        .tensor("sums", a.sums, DType::F32, {rows, parts})
        .tensor("targetLogits", a.targetLogits, DType::F32, {rows})
        .holds(a.part >= 0 && a.part < parts, "part must be a column of tops")
        .holds(a.first >= 0, kFirstColumnWords)
        .status();
}

Status checkJoinSoftmax(const JoinSoftmaxArgs& a)
{
    const std::int64_t rows = a.tops.dims[0];
    return Checker("joinSoftmax")
        .leads("tops", a.tops, 2, true)
        .tensor("sums", a.sums, DType::F32, {rows, a.tops.dims[1]})
        .tensor("targets", a.targets, DType::I32, {rows})
        .tensor("targetLogits", a.targetLogits, DType::F32, {rows})
        .tensor("top", a.top, DType::F32, {rows})
        .tensor("total", a.total, DType::F32, {rows})
        .tensor("losses", a.losses, DType::F32, {rows})
        .status();
}

Status checkSoftmaxGradient(const SoftmaxGradientArgs& a)
{
    const std::int64_t rows = a.logits.dims[0];
    return Checker("softmaxGradient")
        .leads("logits", a.logits, 2, true)
        .tensor("targets", a.targets, DType::I32, {rows})
        .tensor("top", a.top, DType::F32, {rows})
        .tensor("total", a.total, DType::F32, {rows})
        .holds(isCompute(a.gradLogits.dtype), "gradLogits must be F32 or BF16")
        .tensor("gradLogits", a.gradLogits, a.gradLogits.dtype, {rows, a.logits.dims[1]})
        .holds(a.gradLogits.data != a.logits.data || a.gradLogits.dtype == DType::F32 || rows == 0,
            "gradLogits may be logits only as F32")
        .holds(a.first >= 0, kFirstColumnWords)
        .holds(a.softcap >= 0.0F, kCapWords)
        .status();
}

} // namespace mr
