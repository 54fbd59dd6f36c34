// Refusals of planMemory().

#include "core/plan/memory_plan_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace mr {

Status checkInput(const StepSpec& spec, const ModelShape& shape, StateCodec codec)
{
    if (!isLossless(codec) && spec.precision != Precision::BF16) {
        return Status::error(ErrorKind::InvalidArgument,
            codec == StateCodec::Compact
                ? "policy option state=compact needs precision bf16; choose that or state=fp32"
                : "weights of 24 or 16 bits need precision bf16; choose that or --weights fp32");
    }
    if (shape.layers() < 2) {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format(
                "plan: a model has an embedding and a head, not {} groups", shape.layers()));
    }
    if (spec.microBatches < 1) {
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("plan: a step has at least one micro-batch, not {}", spec.microBatches));
    }
    return {};
}

// Rows of two planes would have to be joined.
Status checkRows(const StepSpec& spec, const VocabularyTiles& vocabulary)
{
    if (!vocabulary.any() || spec.precision == Precision::BF16)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        "policy option vocabulary=host needs precision bf16; choose that or leave it out");
}

// Backward makes the block again from the codes of its input, and reads nothing that forward made
// from the input itself.
Status checkCodes(
    const StepSpec& spec, const ModelShape& shape, const std::vector<GroupPlacement>& placements)
{
    const bool isKept = std::ranges::any_of(
        placements, [](const GroupPlacement& home) { return home.activationsOnHost > 0.0; });
    if (!shape.codesInputs() || (spec.recompute == Recompute::Block && !isKept))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        "keep-inputs int8 needs recompute block, and no activations on the host; use "
        "keep-inputs bf16, or leave the others out");
}

// Backward writes over what it reads but the inputs of blocks, which must be as forward left them.
Status checkBackward(
    const StepSpec& spec, const ModelShape& shape, const OffloadPolicy& policy, int inFlight)
{
    if (isForwardOnly(policy.optimizer) && shape.codesInputs())
        return Status::error(ErrorKind::InvalidArgument,
            "keep-inputs int8: an optimizer without backward keeps no inputs of blocks; leave it "
            "out");
    if (!passesTwice(policy, spec))
        return {};
    if (spec.recompute != Recompute::Block || shape.codesInputs())
        return Status::error(ErrorKind::InvalidArgument,
            "policy option clip-mode=two-pass needs recompute block and keep-inputs bf16, because "
            "backward comes twice; use these, or clip-mode=own");
    if (inFlight < spec.microBatches)
        return Status::error(ErrorKind::InvalidArgument,
            "policy option clip-mode=two-pass needs an order by layer; leave order out");
    return {};
}

} // namespace mr
