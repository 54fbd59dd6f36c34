#include "models/run_pause.h"

#include "text/units.h"

#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>

namespace mr::ui {

namespace {

RunPause parse(const QJsonObject& data)
{
    RunPause pause;
    pause.isFull = data[QLatin1String("reason")].toString() == QLatin1String("full");
    pause.isQuota = data[QLatin1String("quota")].toBool();
    pause.isModel = data[QLatin1String("what")].toString() == QLatin1String("model");
    pause.step = data[QLatin1String("step")].toInteger();
    pause.folder = data[QLatin1String("folder")].toString();
    pause.neededBytes = data[QLatin1String("needed_bytes")].toDouble();
    pause.freeBytes = data[QLatin1String("free_bytes")].toDouble();
    pause.why = data[QLatin1String("why")].toString();
    return pause;
}

} // namespace

std::optional<RunPause> pauseOf(const RunSnapshot& snapshot)
{
    if (snapshot.run.status != RunStatus::Paused)
        return std::nullopt;
    const auto last = std::find_if(snapshot.events.rbegin(), snapshot.events.rend(),
        [](const EventRow& row) { return row.code == "paused"; });
    if (last == snapshot.events.rend())
        return std::nullopt;
    const QJsonDocument data = QJsonDocument::fromJson(QByteArray::fromStdString(last->data));
    if (!data.isObject())
        return std::nullopt;
    return parse(data.object());
}

QString RunPauseText::title(const RunPause& pause)
{
    if (pause.isQuota)
        return tr("Paused: your quota on this disk is reached");
    return pause.isFull ? tr("Paused: the disk is full")
                        : tr("Paused: the folder cannot be written");
}

QString RunPauseText::sentence(const RunPause& pause)
{
    const QString needed = memoryText(pause.neededBytes);
    QString text = pause.isModel ? tr("The trained model needs %1 in %2.").arg(needed, pause.folder)
                                 : tr("The checkpoint of step %1 needs %2 in %3.")
                                       .arg(countText(pause.step), needed, pause.folder);
    text += QLatin1Char(' ');
    if (pause.isQuota) // this user may not use the free bytes there
        text += tr("The system gives you no more space there.");
    else if (pause.isFull)
        text += tr("%1 are free there.").arg(memoryText(pause.freeBytes));
    else
        text += tr("It could not be written: %1.").arg(pause.why);
    return text + QLatin1Char(' ') +
           tr("Nothing is lost: training waits, and goes on by itself when there is room.");
}

} // namespace mr::ui
