#include "core/step/host_batches.h"

#include "core/device/op_checks.h"

#include <cstring>

namespace mr {
namespace {

void copyBatch(const ModelConfig& config, const MicroBatchData& from, const TokenRows& rows,
    const BatchViews& to)
{
    const auto put = [](const std::vector<std::int32_t>& values, const TensorView& view) {
        std::memcpy(view.data, values.data(), view.bytes());
    };
    put(from.ids, to.ids);
    put(from.targets, to.targets);
    put(from.positions, to.positions);
    put(from.visibleFrom, to.visibleFrom);
    put(from.order, to.order);
    fillWindow(config, to);
    if (rows.any())
        rows.fill(to);
}

} // namespace

Status fillHostBatches(
    const ModelConfig& config, std::span<const MicroBatchData> micros, const RunMemory& memory)
{
    if (micros.size() > memory.hostBatches.size())
        return Status::error(ErrorKind::Internal, "step executor: more micro-batches than planned");
    for (std::size_t m = 0; m < micros.size(); ++m) {
        // The last place where every device's ids are in host memory.
        MR_TRY(checkIds("batch", micros[m].ids, config.vocab));
        MR_TRY(checkIds("batch, targets", micros[m].targets, config.vocab, -1));
        copyBatch(config, micros[m], memory.tokenRows, memory.hostBatches[m]);
    }
    return {};
}

Status readInputRows(const RunMemory& memory, std::size_t micro, std::span<const std::int32_t> ids)
{
    if (!memory.inputTable)
        return {};
    return memory.inputTable->read(ids, memory.hostBatches[micro].inputRows);
}

} // namespace mr
