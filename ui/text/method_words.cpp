#include "text/method_words.h"

#include "text/format.h"
#include "text/plan_words.h"
#include "text/units.h"

#include <QStringList>

namespace mr::ui {

namespace {

// "4.80 GiB of device memory"
QString inTier(const PlanTier& tier)
{
    const QString bytes = memoryText(static_cast<double>(tier.totalBytes));
    if (tier.tier == "device")
        return MethodWords::tr("%1 of device memory").arg(bytes);
    if (tier.tier == "host")
        return MethodWords::tr("%1 of host memory").arg(bytes);
    return MethodWords::tr("%1 on disk").arg(bytes);
}

} // namespace

QString MethodWords::name(Method method)
{
    switch (method) {
    case Method::Everything:
        return tr("Everything");
    case Method::Blocks:
        return tr("All blocks, one at a time");
    case Method::Adapter:
        return tr("An adapter (LoRA)");
    case Method::Nf4Adapter:
        return tr("An adapter beside the model in 4 bits (QLoRA)");
    case Method::Layers:
        return tr("Some layers");
    }
    return {};
}

QString MethodWords::help(Method method)
{
    switch (method) {
    case Method::Everything:
        return tr("Trains all weights of the model: the largest change, and the most memory.");
    case Method::Blocks:
        return tr(
            "Trains each block for some steps, then the next one; embedding and head stay as "
            "they are. Memory holds the optimizer state of one block, and the rest of the model "
            "is only read, also from its own files on an SSD. A step takes about 60 % of the "
            "time, and the run about twice the tokens.");
    case Method::Adapter:
        return tr("Trains small matrices beside the model, whose own weights stay as they are. "
                  "The result is a small file that is used together with the model.");
    case Method::Nf4Adapter:
        return tr("Holds the model in a quarter of the memory, at some loss of accuracy. "
                  "The adapter learns to make up for it.");
    case Method::Layers:
        return tr("Trains the layers you name; the others stay as they are.");
    }
    return {};
}

const char* MethodWords::word(Method method)
{
    switch (method) {
    case Method::Everything:
        break;
    case Method::Blocks:
        return "blocks";
    case Method::Adapter:
        return "lora";
    case Method::Nf4Adapter:
        return "qlora";
    case Method::Layers:
        return "layers";
    }
    return "full";
}

QString MethodWords::need(const PlanReport& plan)
{
    if (!plan.fits && plan.tiers.empty())
        return tr("Not possible: %1").arg(QString::fromStdString(plan.limit));
    if (!plan.fits)
        return tr("Does not fit. %1").arg(PlanWords::limit(plan));
    QStringList parts;
    for (const PlanTier& tier : plan.tiers)
        if (tier.totalBytes > 0)
            parts << inTier(tier);
    if (plan.predictedStepMs > 0.0)
        parts << tr("%1 a step", "a time").arg(Format::milliseconds(plan.predictedStepMs));
    return tr("Fits: %1").arg(parts.join(tr(", ", "between needs")));
}

QString MethodWords::trained(const PlanReport& plan)
{
    if (plan.parameters == 0)
        return {};
    const QString all = Format::shortCount(plan.parameters);
    if (plan.trainedParameters == plan.parameters)
        return tr("Trains all %1 parameters").arg(all);
    return tr("Trains %1 parameters; the model has %2")
        .arg(Format::shortCount(plan.trainedParameters), all);
}

QString MethodWords::adapter(qint64 rank, bool isNf4)
{
    return (isNf4 ? tr("QLoRA adapter, rank %1") : tr("adapter, rank %1")).arg(rank);
}

QString MethodWords::blocks()
{
    return tr("one block at a time");
}

QString MethodWords::layers(const QString& names)
{
    return tr("layers %1", "names of layers").arg(names);
}

} // namespace mr::ui
