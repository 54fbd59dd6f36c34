#include "core/run/opening_check.h"

#include "core/base/bytes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mr {
namespace {

bool isAmong(const std::vector<GradientShape>& shapes, const GradientShape& shape)
{
    return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

// Recorded shapes that the run has: the record may come from a stranger.
void keepRecorded(const std::vector<RunProduct>& products,
    const std::vector<GradientShape>& recorded, ProductVerdict& verdict)
{
    for (const RunProduct& product : products) {
        const GradientShape shape{product.out, product.in};
        if (isAmong(recorded, shape) && !isAmong(verdict.apart, shape))
            verdict.apart.push_back(shape);
    }
}

Status takeScratch(RunContext& run)
{
    run.productScratch = {};
    const std::size_t bytes = scratchBytes(run.products);
    if (bytes == 0)
        return {};
    auto scratch = run.device.allocate(bytes, MemoryKind::Device, "added apart");
    if (!scratch.ok() && scratch.status().kind() == ErrorKind::OutOfMemory)
        return Status::error(ErrorKind::OutOfMemory,
            describe(run.products) + " There is no room for that: " + scratch.status().message() +
                "; give a larger --device-memory, or another --micro-batch, whose products may be "
                "added as they should");
    MR_TRY(scratch.status());
    run.productScratch = std::move(scratch).value();
    return {};
}

} // namespace

Status checkRunProducts(RunContext& run)
{
    const RunSetup& setup = run.setup;
    const std::vector<RunProduct> products =
        runProducts(setup.config, everTrained(setup), setup.micro);
    const std::vector<GradientShape> recorded = std::exchange(run.products, {}).apart;
    if (run.device.info().picksAlgorithms) {
        ProductCheckLimits limits;
        limits.memoryBytes = setup.memory.bytes(Tier::Device); // so the run's peak stays its plan's
        MR_ASSIGN(run.products, checkProducts(run.device, products, limits));
    }
    keepRecorded(products, recorded, run.products);
    return takeScratch(run);
}

} // namespace mr
