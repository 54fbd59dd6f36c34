#include "text/timeline_words.h"

#include "text/stall_words.h"
#include "text/units.h"

#include <QLocale>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

namespace mr::ui {

namespace {

struct TaskWord {
    std::string_view name;
    const char* text;
    TimelineClass kind;
};

constexpr std::array kTasks = {
    TaskWord{"FetchBatch", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Fetch the batch"),
        TimelineClass::Batches},
    TaskWord{"ReadFromDisk", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Read from disk"),
        TimelineClass::DiskRead},
    TaskWord{"WriteToDisk", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Write to disk"),
        TimelineClass::DiskWrite},
    TaskWord{"ReadWeights", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Read weights from disk"),
        TimelineClass::DiskRead},
    TaskWord{"ReadFrozen",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Read frozen weights from disk"),
        TimelineClass::DiskRead},
    TaskWord{"SpillGradient", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Write gradient to disk"),
        TimelineClass::DiskWrite},
    TaskWord{"FetchWeights", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Fetch weights"),
        TimelineClass::Weights},
    TaskWord{"FetchRows", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Fetch rows of the embedding"),
        TimelineClass::Weights},
    TaskWord{"FetchFrozen", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Fetch frozen weights"),
        TimelineClass::Weights},
    TaskWord{"FetchState", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Fetch optimizer state"),
        TimelineClass::State},
    TaskWord{"StoreState", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Store optimizer state"),
        TimelineClass::State},
    TaskWord{
        "Forward", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Forward"), TimelineClass::Forward},
    TaskWord{"Backward", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Backward"),
        TimelineClass::Backward},
    TaskWord{"FinishGradient", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Finish gradient"),
        TimelineClass::Gradients},
    TaskWord{"SaveBoundary", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Save layer input"),
        TimelineClass::Boundaries},
    TaskWord{"LoadBoundary", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Load layer input"),
        TimelineClass::Boundaries},
    TaskWord{"SaveActivations",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Save activations of a block"),
        TimelineClass::Boundaries},
    TaskWord{"LoadActivations",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Load activations of a block"),
        TimelineClass::Boundaries},
    TaskWord{"WriteBoundary",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Write layer input to disk"),
        TimelineClass::DiskWrite},
    TaskWord{"ReadBoundary",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Read layer input from disk"),
        TimelineClass::DiskRead},
    TaskWord{"SendGradient", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Send gradient"),
        TimelineClass::Gradients},
    TaskWord{"SendWeights", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Send weights"),
        TimelineClass::Weights},
    TaskWord{"SelectColumns", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Select urgent columns"),
        TimelineClass::Optimizer},
    TaskWord{"PackComplement", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Pack other columns"),
        TimelineClass::Gradients},
    TaskWord{"AccumulateOnHost", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Add gradient on host"),
        TimelineClass::Gradients},
    TaskWord{"AccumulateOnDevice",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Add gradient on device"),
        TimelineClass::Gradients},
    TaskWord{"UploadComplement", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Upload other columns"),
        TimelineClass::Weights},
    TaskWord{"ScatterComplement",
        QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Scatter other columns"),
        TimelineClass::Weights},
    TaskWord{"MoveOwnership", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Move column ownership"),
        TimelineClass::State},
    TaskWord{"NormPart", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Gradient norm, part"),
        TimelineClass::Optimizer},
    TaskWord{"JoinNorm", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Gradient norm, sum"),
        TimelineClass::Optimizer},
    TaskWord{"SendScalars", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Send loss and norm"),
        TimelineClass::Batches},
    TaskWord{"UpdateOnDevice", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Update on device"),
        TimelineClass::Optimizer},
    TaskWord{"UpdateOnHost", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Update on host"),
        TimelineClass::Optimizer},
    TaskWord{"checkpoint", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Checkpoint"),
        TimelineClass::Engine},
    TaskWord{"evaluation", QT_TRANSLATE_NOOP("mr::ui::TimelineWords", "Evaluation"),
        TimelineClass::Engine},
};

const TaskWord* find(const std::string& name)
{
    const auto hit = std::find_if(
        kTasks.begin(), kTasks.end(), [&name](const TaskWord& task) { return task.name == name; });
    return hit == kTasks.end() ? nullptr : &*hit;
}

constexpr std::string_view kBlockPrefix = "block ";

QString causeName(StallCause cause)
{
    return StallWords::name(1 + static_cast<std::size_t>(cause));
}

// "3" of "block 3"; empty for a group that is no block.
QString blockNumber(const TimelineSpan& span, const std::vector<std::string>& groups)
{
    const auto index = static_cast<std::size_t>(span.group);
    if (span.group < 0 || index >= groups.size() || !groups[index].starts_with(kBlockPrefix))
        return {};
    return QString::fromStdString(groups[index].substr(kBlockPrefix.size()));
}

} // namespace

TimelineClass TimelineWords::classOf(const TimelineSpan& span)
{
    if (span.kind == TimelineKind::Wait)
        return TimelineClass::Wait;
    const TaskWord* known = find(span.task);
    return known ? known->kind : TimelineClass::Engine;
}

QString TimelineWords::className(TimelineClass kind)
{
    switch (kind) {
    case TimelineClass::Wait:
        return tr("Compute waits");
    case TimelineClass::Forward:
        return tr("Forward");
    case TimelineClass::Backward:
        return tr("Backward");
    case TimelineClass::Gradients:
        return tr("Gradients");
    case TimelineClass::Optimizer:
        return tr("Optimizer");
    case TimelineClass::Weights:
        return tr("Weights");
    case TimelineClass::State:
        return tr("Optimizer state");
    case TimelineClass::Boundaries:
        return tr("Layer inputs");
    case TimelineClass::Batches:
        return tr("Batches and scalars");
    case TimelineClass::DiskRead:
        return tr("Disk reads");
    case TimelineClass::DiskWrite:
        return tr("Disk writes");
    case TimelineClass::Engine:
        break;
    }
    return tr("Engine");
}

QColor TimelineWords::classColor(TimelineClass kind, const ThemeColors& colors)
{
    switch (kind) {
    case TimelineClass::Wait:
        return colors.error;
    case TimelineClass::Forward:
        return colors.compute;
    case TimelineClass::Backward:
        return colors.series[3];
    case TimelineClass::Gradients:
        return colors.series[2];
    case TimelineClass::Optimizer:
        return colors.series[1];
    case TimelineClass::Weights:
    case TimelineClass::DiskRead:
        return colors.series[7];
    case TimelineClass::State:
    case TimelineClass::DiskWrite:
        return colors.series[6];
    case TimelineClass::Boundaries:
        return colors.series[4];
    case TimelineClass::Batches:
    case TimelineClass::Engine:
        break;
    }
    return colors.series[5];
}

QString TimelineWords::lane(TimelineLane lane)
{
    switch (lane) {
    case TimelineLane::Compute:
        return tr("Compute");
    case TimelineLane::CopyIn:
        return tr("In", "copies to the device");
    case TimelineLane::CopyOut:
        return tr("Out", "copies to the host");
    case TimelineLane::Host:
        return tr("Host");
    case TimelineLane::DiskIn:
        return tr("Disk in", "reads from the disk");
    case TimelineLane::DiskOut:
        return tr("Disk out", "writes to the disk");
    case TimelineLane::Engine:
        break;
    }
    return tr("Engine");
}

QString TimelineWords::laneExplanation(TimelineLane lane)
{
    switch (lane) {
    case TimelineLane::Compute:
        return tr("Compute tasks of the device; red where it waits.");
    case TimelineLane::CopyIn:
        return tr("Copies from the host to the device.");
    case TimelineLane::CopyOut:
        return tr("Copies from the device to the host.");
    case TimelineLane::Host:
        return tr("The optimizer's work on the host's cores.");
    case TimelineLane::DiskIn:
        return tr("Reads from the disk to the host.");
    case TimelineLane::DiskOut:
        return tr("Writes from the host to the disk.");
    case TimelineLane::Engine:
        break;
    }
    return tr("Work of the engine between steps.");
}

QString TimelineWords::task(const std::string& name)
{
    const TaskWord* known = find(name);
    return known ? tr(known->text) : QString::fromStdString(name);
}

QString TimelineWords::layer(const std::string& name)
{
    if (name == "embedding")
        return tr("Embedding");
    if (name == "head")
        return tr("Head");
    if (name == "shared")
        return tr("Shared slots");
    if (name.starts_with(kBlockPrefix))
        return tr("Layer %1").arg(QString::fromStdString(name.substr(kBlockPrefix.size())));
    return QString::fromStdString(name);
}

QString TimelineWords::layerOf(const TimelineSpan& span, const std::vector<std::string>& groups)
{
    if (span.group < 0)
        return {};
    const auto index = static_cast<std::size_t>(span.group);
    return index < groups.size() ? layer(groups[index]) : tr("Group %1").arg(span.group);
}

QString TimelineWords::why(const std::string& reason)
{
    if (reason == "slowest so far")
        return tr("the slowest until then");
    std::string digits;
    std::copy_if(reason.begin(), reason.end(), std::back_inserter(digits),
        [](unsigned char c) { return std::isdigit(c) != 0; });
    if (reason.starts_with("every ") && !digits.empty())
        return tr("one of every %1").arg(QString::fromStdString(digits));
    return QString::fromStdString(reason);
}

QStringList TimelineWords::barTexts(
    const TimelineSpan& span, const std::vector<std::string>& groups)
{
    if (span.kind == TimelineKind::Wait) {
        const QString cause = causeName(span.cause);
        const QString time = spanText(static_cast<double>(span.endNs - span.beginNs));
        return {tr("waits for %1 · %2", "cause, time").arg(cause, time), cause};
    }
    const QString where = layerOf(span, groups);
    if (where.isEmpty())
        return {task(span.task)};
    QStringList texts;
    if (span.micro < 0)
        texts << task(span.task) + QStringLiteral(" · ") + where;
    else
        texts << tr("%1 · micro-batch %2", "layer").arg(where).arg(span.micro)
              << QStringLiteral("%1 · %2").arg(where).arg(span.micro);
    texts << where;
    if (const QString number = blockNumber(span, groups); !number.isEmpty())
        texts << tr("L%1", "a layer, as short as can be").arg(number);
    return texts;
}

QString TimelineWords::title(const TimelineSpan& span)
{
    return span.kind == TimelineKind::Wait ? tr("Compute waits: %1").arg(causeName(span.cause))
                                           : task(span.task);
}

QString spanText(double ns)
{
    const QLocale locale;
    const QChar space(0xa0);
    const double magnitude = std::abs(ns);
    if (magnitude >= 1e9)
        return locale.toString(ns / 1e9, 'f', 3) + space + QStringLiteral("s");
    if (magnitude >= 1e6)
        return locale.toString(ns / 1e6, 'f', magnitude < 1e8 ? 2 : 1) + space +
               QStringLiteral("ms");
    if (magnitude >= 1e3)
        return locale.toString(ns / 1e3, 'f', magnitude < 1e5 ? 1 : 0) + space +
               QStringLiteral("µs");
    return locale.toString(ns, 'f', 0) + space + QStringLiteral("ns");
}

} // namespace mr::ui
