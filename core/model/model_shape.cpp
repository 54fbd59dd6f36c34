// modelShape(): the numbers that planning needs of a model. See layout.h.

#include "core/model/frozen_model.h"
#include "core/model/layout.h"
#include "core/model/packed_group.h"
#include "core/model/saved_modules.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr {
namespace {

double matrixFlops(const ParamGroup& group, std::int64_t tokens)
{
    double flops = 0.0;
    for (const ParamSlot& slot : group.paramSlots)
        if (slot.rank == 2 && slot.kind != SlotKind::Embedding &&
            slot.kind != SlotKind::InputTable) // these are looked up
            flops += 2.0 * static_cast<double>(slot.count()) * static_cast<double>(tokens);
    return flops;
}

// Flops of DoRA in a pass, and of backward beside them: the norms of all rows, and the products of
// the base and the adapter once more.
struct DoraFlops {
    double norms = 0.0;
    double products = 0.0;
};

DoraFlops doraFlops(const ParamTable& table, GroupId group, double adapter, std::int64_t tokens)
{
    DoraFlops flops;
    if (!table.frozen->settings.dora)
        return flops;
    flops.products = adapter;
    const ParamSlot* counted = nullptr;
    for (const AdapterModule& module :
        table.frozen->adapters[static_cast<std::size_t>(group.value)]) {
        flops.norms += 2.0 * static_cast<double>(module.rank * module.rows * module.in);
        const ParamSlot* slot = table.frozen->model.find(group, module.product);
        if (slot != counted)
            flops.products += 2.0 * static_cast<double>(slot->count() * tokens);
        counted = slot; // modules of a product follow each other
    }
    return flops;
}

// Flops of a group's passes. Backward takes as many as forward for the gradient of the input, and
// once more for that of the weights, where they are trained. Backward of an adapter makes its first
// product again.
struct PassFlops {
    double forward = 0.0;
    double backward = 0.0;
};

PassFlops passFlops(const ParamTable& table, GroupId group, double ofModel, std::int64_t tokens)
{
    const auto index = static_cast<std::size_t>(group.value);
    const bool isWhole = !table.frozen || table.frozen->adapters[index].empty();
    if (isWhole)
        return {ofModel, (table.groups[index].elements > 0 ? 2.0 : 1.0) * ofModel};
    const double adapter = matrixFlops(table.groups[index], tokens);
    const DoraFlops dora = doraFlops(table, group, adapter, tokens);
    return {ofModel + adapter + dora.norms, ofModel + 2.5 * adapter + dora.norms + dora.products};
}

// Tensors of a group in the model's files; packed weights lie in one piece.
int frozenTensors(const ParamTable& table, GroupId group)
{
    if (frozenElements(table, group) == 0 || packedGroup(table, group, DType::BF16).bytes > 0)
        return 1;
    return static_cast<int>(std::ranges::count(modelTable(table, group).tensors, group,
        [](const NamedTensor& tensor) { return tensor.group; }));
}

// Keys a query of the block sees, on average over a sequence: half the sequence, or the window
// less the corner it lacks at the start.
double meanKeys(const ModelConfig& config, std::int64_t block, std::int64_t seqLen)
{
    const auto length = static_cast<double>(seqLen);
    const std::int64_t seen = config.kindOf(block).window;
    const auto window = static_cast<double>(seen);
    if (seen == 0 || seen >= seqLen)
        return 0.5 * length;
    return window - 0.5 * window * window / length;
}

// Flops of the mixer beside the products: scores and values, or the delta rule by chunks.
double mixerFlops(const ModelConfig& config, std::int64_t block, const MicroShape& shape)
{
    const BlockKind& kind = config.kindOf(block);
    const auto tokens = static_cast<double>(shape.tokens());
    if (!kind.isDelta())
        return 4.0 * static_cast<double>(kind.queryColumns()) * tokens *
               meanKeys(config, block, shape.seqLen);
    const DeltaShape& delta = kind.delta;
    const std::int64_t each = 6 * std::int64_t{delta.keyDim} * delta.valueDim +
                              kRecurrentRows * (4 * delta.keyDim + 3 * delta.valueDim);
    return static_cast<double>(delta.valueHeads * each) * tokens;
}

// Blocks of equal work are of one kind, in the order in which these appear. The last number is that
// of all further ones, too.
int kindOf(double flops, std::vector<double>& kinds)
{
    const auto found = std::ranges::find(kinds, flops);
    const auto kind = static_cast<int>(found - kinds.begin());
    if (found == kinds.end())
        kinds.push_back(flops);
    return std::min(kind, kMostBlockKinds - 1);
}

} // namespace

std::vector<WeightShape> weightShapes(const ParamGroup& group)
{
    std::vector<WeightShape> weights;
    for (const ParamSlot& slot : group.paramSlots) {
        const bool isVector = slot.rank == 1;
        weights.push_back({slot.first, isVector ? 1 : slot.rows,
            isVector ? slot.rows * slot.cols : slot.cols, isVector});
    }
    return weights;
}

ModelShape modelShape(const ModelConfig& config, const ParamTable& table, const MicroShape& shape)
{
    ModelShape out;
    const std::int64_t tokens = shape.tokens();
    const auto last = table.groups.size() - 1;
    std::vector<double> kinds; // flops of each
    for (std::size_t g = 0; g < table.groups.size(); ++g) {
        const ParamGroup& group = table.groups[g];
        const GroupId id{static_cast<std::int32_t>(g)};
        double flops = matrixFlops(modelTable(table, id).groups[g], tokens);
        if (g == last && config.tiedEmbedding) // its matrix is in group 0
            flops += 2.0 * static_cast<double>(config.vocab * config.hidden * tokens);
        const bool isBlock = g != 0 && g != last;
        if (isBlock)
            flops += mixerFlops(config, static_cast<std::int64_t>(g) - 1, shape);
        PassFlops passes = passFlops(table, id, flops, tokens);
        if (g == last) // a tied matrix is trained with group 0
            passes.backward = (trainsHeadMatrix(table) ? 2.0 : 1.0) * flops;
        out.groups.push_back(
            {group.name, group.elements, passes.forward, passes.backward, weightShapes(group),
                frozenElements(table, id), packedGroup(table, id, shape.compute).bytes,
                frozenTensors(table, id), isBlock ? kindOf(flops, kinds) : 0});
    }
    out.inTurns = isInTurns(table);
    out.readsFrozen = isAdapter(table) || out.inTurns;
    out.tiedHead = config.tiedEmbedding;
    const bool trainsBoth = config.tiedEmbedding && out.groups.front().isTrained();
    out.secondAccumulatorElements =
        trainsBoth ? table.groups.front().paramSlots.front().count() : 0;
    out.boundaryBytes = matrixView(nullptr, shape.compute, tokens, config.hidden).bytes();
    if (shape.codedInputs)
        out.keptBoundaryBytes = codedBytes(tokens, config.hidden).all;
    HeadScratch head;
    BatchViews batch;
    ModelConstants constants;
    ScalarViews scalars;
    const BlockBytes block = blockBytes(config, shape);
    out.savedBytesPerBlock = block.activations();
    out.remadeBytesPerBlock = block.remade;
    out.backwardScratchBytes = block.scratch;
    out.headScratchBytes = layoutHead(config, shape, true, nullptr, head);
    out.headInferenceBytes = layoutHead(config, shape, false, nullptr, head);
    if (trainsHeadMatrix(table))
        out.headProductBytes = headProductBytes(config, shape);
    const std::int64_t productRows = headProductRows(config, shape);
    out.headProducts = headParts(config, shape).areSeveral()
                           ? 1
                           : static_cast<int>((tokens + productRows - 1) / productRows);
    if (const HeadParts parts = headParts(config, shape);
        parts.areSeveral() && !config.tiedEmbedding && out.groups.front().isTrained() &&
        out.groups.back().isTrained()) {
        const ParamSlot* matrix =
            table.find(GroupId{static_cast<std::int32_t>(last)}, SlotKind::Head);
        out.vocabulary = {config.vocab, config.hidden, parts.rows, matrix->first};
        HeadRows rows;
        out.headRowsBytes = layoutHeadRows(config, shape, true, nullptr, rows);
        out.headTileBytes = layoutHeadTile(config, shape, true, nullptr, head);
    }
    out.batchBytes = layoutBatch(config, shape, nullptr, batch);
    SharedViews shared;
    out.sharedBytes = layoutShared(config, shape, nullptr, shared);
    out.constantBytes = layoutConstants(config, shape, nullptr, constants);
    out.scalarBytes = layoutScalars(table, shape, nullptr, scalars);
    out.sentScalarBytes = scalars.sentBytes;
    return out;
}

} // namespace mr
