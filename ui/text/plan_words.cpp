#include "text/plan_words.h"

#include "text/units.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace mr::ui {

namespace {

struct Kind {
    std::string_view name;
    const char* text;
    std::size_t color; // index in ThemeColors::series; related kinds share one
};

constexpr std::array kBytesKinds = {
    Kind{"weights", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Weights"), 0},
    Kind{"frozen weights", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Frozen weights"), 0},
    Kind{"high plane", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Master weights, high half"), 7},
    Kind{"low plane", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Master weights, low half"), 3},
    Kind{"first moments", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Adam first moments"), 1},
    Kind{"second moments", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Adam second moments"), 1},
    Kind{"averages of squares",
        QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Averages by row and column"), 1},
    Kind{"update scratch", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Workspace of updates"), 5},
    Kind{"optimizer state", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Optimizer state"), 1},
    Kind{"accumulators", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradient sums"), 2},
    Kind{"second accumulator",
        QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradient sums of the tied head"), 2},
    Kind{"gradients", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradients"), 2},
    Kind{"boundaries", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Layer inputs"), 7},
    Kind{"shared", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Shared between layers"), 7},
    Kind{"moved copies", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Weights moved both ways"), 0},
    Kind{"input codes", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Layer inputs in 8 bits"), 7},
    Kind{"activations", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Activations"), 4},
    Kind{"workspace", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Workspace"), 5},
    Kind{"head", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Loss head"), 6},
    Kind{"head product", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Product of the loss head"), 6},
    Kind{"batches", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Batches"), 5},
    Kind{"constants", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Constants"), 5},
    Kind{"scalars", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Scalars"), 5},
    Kind{"staging", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Staging for copies"), 5},
    Kind{"state slots", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Visiting optimizer state"), 1},
    Kind{"disk slots", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "State on its way from the disk"), 5},
    Kind{"state on disk", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Optimizer state on the disk"), 1},
    Kind{"weights on disk", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Weights on the disk"), 0},
    Kind{"gradients on disk", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradients on the disk"), 2},
    Kind{"boundaries on disk", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Layer inputs on the disk"),
        7},
    Kind{"upload landing", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Landing of uploads"), 5},
    Kind{"packed landing", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Landing of 4-bit weights"), 5},
    Kind{"urgent state", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "State of urgent columns"), 1},
    Kind{"urgent gradients", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradients of urgent columns"),
        2},
    Kind{"urgent sums",
        QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Sums of urgent columns over a window"), 2},
    Kind{
        "urgent scratch", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Workspace of urgent columns"), 5},
    Kind{"column energies", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Energies of columns"), 5},
    Kind{"column lists", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Lists of columns"), 5},
    Kind{"packed gradients",
        QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradients packed for the host"), 2},
    Kind{
        "upload slots", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Landing of the host's columns"), 5},
    Kind{"window sums", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Gradient sums over a window"), 2},
    Kind{
        "weight slots", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Weights while they are in use"), 0},
    Kind{"window scalars", QT_TRANSLATE_NOOP("mr::ui::PlanWords", "Norm of a window"), 5},
};

const Kind* findKind(const std::string& name)
{
    const auto hit = std::find_if(kBytesKinds.begin(), kBytesKinds.end(),
        [&name](const Kind& kind) { return kind.name == name; });
    return hit == kBytesKinds.end() ? nullptr : &*hit;
}

} // namespace

QString PlanWords::kind(const std::string& name)
{
    const Kind* known = findKind(name);
    return known ? tr(known->text) : QString::fromStdString(name);
}

QColor PlanWords::kindColor(const std::string& name, const ThemeColors& colors)
{
    const Kind* known = findKind(name);
    return colors.series[known ? known->color : 5];
}

QString PlanWords::exactness(bool exact, int maxStaleSteps, const std::string& inexactBy)
{
    if (exact)
        return tr("exact");
    if (maxStaleSteps > 0)
        return tr("at most %n step(s) stale", nullptr, maxStaleSteps);
    return inexactBy == "order=by-layer-flip" ? tr("summed in flipped order")
                                              : tr("clipped by groups");
}

QString PlanWords::policy(const PlanReport& plan)
{
    return tr("%1, %2", "a policy, how exact it is")
        .arg(QString::fromStdString(plan.policy),
            exactness(plan.exact, plan.maxStaleSteps, plan.inexactBy));
}

QString PlanWords::tier(const std::string& name)
{
    if (name == "device")
        return tr("Device memory");
    if (name == "host")
        return tr("Host memory");
    if (name == "disk")
        return tr("Disk");
    return QString::fromStdString(name);
}

QString PlanWords::limit(const PlanReport& plan)
{
    if (plan.limit.empty())
        return {};
    const auto memory = [](std::uint64_t bytes) { return memoryText(static_cast<double>(bytes)); };
    for (const PlanTier& full : plan.tiers) {
        if (full.totalBytes <= full.budgetBytes)
            continue;
        if (full.tier == "disk" && full.budgetBytes == 0)
            return tr(
                "The optimizer state needs %1 on disk, and no scratch folder is named for it.")
                .arg(memory(full.totalBytes));
        return tr("%1: needs %2, the budget is %3, %4 short.", "a tier of memory")
            .arg(tier(full.tier), memory(full.totalBytes), memory(full.budgetBytes),
                memory(full.totalBytes - full.budgetBytes));
    }
    return QString::fromStdString(plan.limit);
}

} // namespace mr::ui
