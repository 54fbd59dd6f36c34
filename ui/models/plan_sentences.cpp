#include "models/plan_sentences.h"

#include "models/units.h"
#include "widgets/plan_words.h"

#include <cstdint>

namespace mr::ui {

namespace {

QString memory(std::uint64_t bytes)
{
    return memoryText(static_cast<double>(bytes));
}

} // namespace

QString PlanSentences::limit(const PlanReport& plan)
{
    if (plan.limit.empty())
        return {};
    for (const PlanTier& tier : plan.tiers) {
        if (tier.totalBytes <= tier.budgetBytes)
            continue;
        if (tier.tier == "disk" && tier.budgetBytes == 0)
            return tr(
                "The optimizer state needs %1 on disk, and no scratch folder is named for it.")
                .arg(memory(tier.totalBytes));
        return tr("%1: needs %2, the budget is %3, %4 short.", "a tier of memory")
            .arg(PlanWords::tier(tier.tier), memory(tier.totalBytes), memory(tier.budgetBytes),
                memory(tier.totalBytes - tier.budgetBytes));
    }
    return QString::fromStdString(plan.limit);
}

} // namespace mr::ui
