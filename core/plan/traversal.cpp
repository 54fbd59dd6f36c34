#include "core/plan/traversal.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace mr {

namespace {

constexpr std::array<std::string_view, 3> kOrderNames = {
    "by-microbatch", "by-layer", "by-layer-flip"};

using Pass = WorkItem::Pass;

class ByMicroBatch final : public Traversal
{
public:
    std::vector<WorkItem> order(int layers, int microBatches) const override
    {
        std::vector<WorkItem> items;
        items.reserve(
            static_cast<std::size_t>(layers) * static_cast<std::size_t>(microBatches) * 2);
        for (int m = 0; m < microBatches; ++m) {
            for (int l = 0; l < layers; ++l)
                items.push_back({Pass::Forward, LayerId{l}, MicroBatch{m}});
            for (int l = layers - 1; l >= 0; --l)
                items.push_back({Pass::Backward, LayerId{l}, MicroBatch{m}});
        }
        return items;
    }
};

class ByLayer final : public Traversal
{
public:
    explicit ByLayer(bool flip)
        : m_flip(flip)
    {
    }

    std::vector<WorkItem> order(int layers, int microBatches) const override
    {
        std::vector<WorkItem> items;
        items.reserve(
            static_cast<std::size_t>(layers) * static_cast<std::size_t>(microBatches) * 2);
        for (int l = 0; l < layers; ++l)
            addLayer(items, Pass::Forward, l, microBatches);
        for (int l = layers - 1; l >= 0; --l)
            addLayer(items, Pass::Backward, l, microBatches);
        return items;
    }

private:
    void addLayer(std::vector<WorkItem>& items, Pass pass, int layer, int microBatches) const
    {
        const bool down = m_flip && layer % 2 == 1;
        for (int i = 0; i < microBatches; ++i)
            items.push_back({pass, LayerId{layer}, MicroBatch{down ? microBatches - 1 - i : i}});
    }

    bool m_flip;
};

} // namespace

std::string_view name(WorkOrder order) noexcept
{
    return kOrderNames[static_cast<std::size_t>(order)];
}

Result<WorkOrder> parseWorkOrder(std::string_view text)
{
    for (std::size_t i = 0; i < kOrderNames.size(); ++i) {
        if (kOrderNames[i] == text)
            return static_cast<WorkOrder>(i);
    }
    return Status::error(ErrorKind::InvalidArgument,
        "policy option order=" + std::string(text) +
            ": not an order of work; use by-microbatch, by-layer or by-layer-flip");
}

std::unique_ptr<const Traversal> makeTraversal(WorkOrder order)
{
    if (order == WorkOrder::ByMicroBatch)
        return std::make_unique<ByMicroBatch>();
    return std::make_unique<ByLayer>(order == WorkOrder::ByLayerFlip);
}

bool flipsSums(const Traversal& traversal)
{
    constexpr int kLayers = 4;
    const std::vector<WorkItem> items = traversal.order(kLayers, 2);
    const auto descends = [](const WorkItem& before, const WorkItem& item) {
        return before.pass == Pass::Backward && item.pass == Pass::Backward &&
               before.layer == item.layer && before.micro.value > item.micro.value;
    };
    return std::adjacent_find(items.begin(), items.end(), descends) != items.end();
}

int microBatchesInFlight(const Traversal& traversal, int layers, int microBatches)
{
    const std::vector<WorkItem> items = traversal.order(layers, microBatches);
    const int itemsEach = 2 * layers;
    std::vector<int> seen(static_cast<std::size_t>(microBatches), 0);
    int open = 0;
    int most = 0;
    for (const WorkItem& item : items) {
        int& count = seen[static_cast<std::size_t>(item.micro.value)];
        if (count == 0)
            most = std::max(most, ++open);
        if (++count == itemsEach)
            --open;
    }
    return most;
}

int batchBuffers(int inFlight) noexcept
{
    return std::max(inFlight, 2);
}

int batchBuffers(const OffloadPolicy& policy, int layers, int microBatches)
{
    return batchBuffers(microBatchesInFlight(*policy.traversal, layers, microBatches));
}

} // namespace mr
